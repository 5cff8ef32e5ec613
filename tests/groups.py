"""The groups that tests run in, by their paths below tests/."""

# The paths whose tests carry each marker. The default run leaves them out.
MARKED = {
    "slow": (
        "dialects/test_native_large.py",
        "directory/test_crashes.py",
        "directory/test_processes.py",
        "durability",
        "soak",
        "stores/test_postgres_oldest.py",
        "stores/test_postgres_processes.py",
        "test_bench.py",
        "test_bench_agents.py",
        "test_bench_curation.py",
        "test_bench_meaning.py",
        "test_bench_moving.py",
        "test_bench_recall.py",
        "test_bench_web.py",
        "test_newcomer.py",
        "test_rerun.py",
        "test_run.py",
        "test_wheel.py",
        "transports/test_many_sessions.py",
        "transports/test_hostile.py",
        "transports/test_stopping.py",
    ),
    "matrix": (),
    "interop": ("conformance", "interop", "web"),
}

# The modules that read a server's memory or load the machine. They share one worker.
ONE_AT_A_TIME = (
    "soak/test_soak.py",
    "transports/test_many_sessions.py",
    "transports/test_hostile.py",
    "transports/test_stopping.py",
)
