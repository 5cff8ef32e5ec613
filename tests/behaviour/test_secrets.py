"""Keys, tokens and passwords are recognized; ordinary prose about them is not."""

from time import process_time

import pytest

from polymnia.engine.facts.secrets import find_secret

# Made up for this test: the right shapes with no account behind them.
SECRETS = {
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA",
    "an AWS access key": "deploys use AKIA" + "2E0A8F3B244CABCD",
    "a GitHub token": "push with ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8",
    "a GitLab token": "CI variable glpat-" + "x9Y8z7W6v5U4t3S2r1Q0",
    "a Slack token": "bot: xoxb-" + "123456789012-abcdefABCDEF",
    "an Anthropic key": "export KEY=sk-ant-api03-" + "Zm9vYmFyYmF6cXV4MTIzNDU2",
    "an API key": "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t",
    "a Stripe key": "sk_live_" + "51Habcdefghijklmnopqr",
    "a Google API key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "an npm token": "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "a Hugging Face token": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "a SendGrid key": "SG." + "abcdefghijklmnopqrstuv" + "." + "abcdefghijklmnopqrstuvwxyz",
    "a Telegram bot token": "123456789:AA" + "abcdefghijklmnopqrstuvwxyzABCDEFG",
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9"
    + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
    + ".dozjgNryP4J3jVmNHl0w5N",
    "a password in a URL": "the database is postgres://app:s3cr3tPass@db.internal/main",
    "a Discord token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "a password for curl": "curl -s -u admin:Hj7kk29xQ https://ci.example",
    "a password in a connection string": "Server=db;User Id=app;Password=geheim;",
    "a Polymnia token": "ply_" + "0a1b2c3d4e5f_" + "aB3_dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7cDe0fGh",
    "a password or token": "the password is hunter2!Xy",
}
ASSIGNMENTS = [
    "password: Tr0ub4dor",
    "DB_PASSWORD is set as password=correct7horse",
    'api_key = "8f14e45fceea167a5a36dedd4bea2543"',
    "Authorization: token: 6f9619ff8b86d011b42d00c04fc964ff",
    "client_secret: 7Fjfp0ZBr1KtDRbnfVdmIw1x",
    "password is hunter2",
    "Staging password for admin is Xk29!fooBar77zz",
    "The password we use on the staging host is hunter2!Xy",
    "password for the guest network: Tr0ub4dor",
    "The password is: hunter2.",
    "PGPASSWORD=geheim psql -h db",
    "export DB_PASSWORD='letmein'",
    "MYSQL_PWD=tiger99",
    "MYSQL_PWD=foo",
    "pwd is swordfish",
    "The password is swordfish. Ask Ada for the user.",
    "API_KEY=abcd",
    "export AUTH_TOKEN=abcd-efgh",
    "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz1234AB",
    "AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzzzz1234AB",
    "curl -H 'Authorization: Bearer 6f9619ff8b86d011b42d00c04fc964ff'",
    "Authorization: Basic dXNlcjpzM2NyM3RQYXNz",
    "the agent sends bearer 6f9619ff8b86d011b42d00c04fc964ff",
    "redis://:s3cr3tPass@cache:6379/0",
    "mysql://app:pa:ss:w0rd@db/main",
    "host=db user=app password=geheim",
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
]
PROSE = [
    "the password is rotated weekly",
    "password policy is strict",
    "The password for admin is rotated every 90 days.",
    "The password of a user is argon2id-hashed.",
    "The token for CI is created by the platform team in 2026.",
    "The API token is rotated every 90 days by the platform team.",
    "Ada prefers tokens in the Authorization header; never in the URL.",
    "password: required, at least 12 characters",
    "The password is stored as bcrypt hashes in users.password_hash.",
    "The secret is in 1Password under Staging/Database.",
    "secret: kubernetes-sealed-secrets",
    "Set API_KEY=<your-key> before you start the server",
    "token = os.environ['GITHUB_TOKEN']",
    "Set the password in DATABASE_URL, as in postgres://user@localhost/dev",
    "postgres://${USER}:${PASSWORD}@db/main is the template",
    "The commit 210548b9f0e1d2c3b4a5968778695a4b3c2d1e0f fixed the login.",
    "Entity id 6f9619ff-8b86-d011-b42d-00c04fc964ff was merged.",
    "sk-learn 1.4 is pinned; sk-image is not used.",
    "The token bucket allows 100 requests per second.",
    "Bearer of bad news: the token expired.",
    "He is the key person for access tokens and private keys.",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "The passphrase is known to Ada and Ben only.",
    "The auth token is about 2,000 characters long.",
    "pwd: prints the working directory",
    "pwd is printed",
    "The password is optional.",
    "The password is swordfish flavoured",
    "The password is shared, so change it.",
    "MAX_TOKEN=4096",
    "API_KEY=os.environ",
    "The mountain pass is snowbound.",
    "https://example.com/reset?user=ada",
    "git clone git@github.com:acme/app.git",
    "The key is: simplicity-first",
    "Passwords: min-length 12, no rotation.",
    "The password is argon2id-hashed.",
    "The password is sha256-hashed before it is stored.",
    "The passphrase is base64-encoded.",
    "PWD=/home/ada is the working directory",
    "PGPASSWORD=$SECRET psql",
    "The compass: north2east",
    "Bearer tokens are checked in middleware",
    "Authorization: Bearer <token>",
    "DB_PASSWORD is set in the environment",
    "host=db user=app password=***",
]


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_recognized(kind: str) -> None:
    assert find_secret(SECRETS[kind]) == kind


@pytest.mark.parametrize("text", ASSIGNMENTS)
def test_an_assigned_value_that_looks_random_is_a_secret(text: str) -> None:
    assert find_secret(text)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_secret(text: str) -> None:
    assert find_secret(text) == ""


# Each begins, but never ends, what an expression looks for, or repeats what one may skip.
ADVERSARIAL = (
    *(
        "eyJ-",
        "eyJaaaaaaaaaa.",
        "eyJaaaaaaaaaa.eyJaaaaaaaaaa.",
        "-----BEGIN A PRIVATE KEY ",
        "SG.a",
    ),
    *("password ", "password  ", "token for a ", "bearer  \n", "secret key ", "_token_", "pass_"),
    *(
        "host=a;",
        "host=a ;pwd",
        "://a",
        "a.://a:b",
        "password:=",
        "key=(",
        "xapp-1-",
        "sk-",
        "api-",
    ),
)


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_the_work_of_finding_secrets_grows_with_the_text_only(unit: str) -> None:
    def cpu(letters: int) -> float:
        text = (unit * letters)[:letters]
        start = process_time()
        find_secret(text)
        return process_time() - start

    # Sixteen times the letters: quadratic work is 256 times as much.
    assert cpu(64_000) < 80 * max(min(cpu(4_000), cpu(4_000)), 0.001)
