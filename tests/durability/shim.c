/* Stands between a process and its disk: count, fail or record the calls on files below one directory.
 *
 * Loaded with LD_PRELOAD; `shim.py` builds it and calls the functions named shim_*. Calls of SQLite and
 * of Python pass here alike. Allocations are counted only if SQLite asks for them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 4096
#define CRASHED 86

extern void *__libc_malloc(size_t);
extern void *__libc_realloc(void *, size_t);

static char directory[PATH_MAX];
static size_t directory_length;
static unsigned char is_watched[MAX_DESCRIPTORS];
static long calls, failing_call, allocations, failing_allocation;
static int failing_error, is_full, recording = -1;
static uintptr_t library_start, library_end;

/* Watch the files below a directory. */
void shim_watch(const char *path) {
    strncpy(directory, path, sizeof directory - 1);
    directory_length = strlen(directory);
    memset(is_watched, 0, sizeof is_watched);
    calls = 0;
}

/* Fail a call with an error, or end the process at it if the error is 0. ENOSPC lasts until shim_heal. */
void shim_fail(long call, int error) {
    failing_call = call;
    failing_error = error;
}

void shim_heal(void) {
    is_full = 0;
    if (calls >= failing_call) failing_call = 0;
}

long shim_calls(void) { return calls; }

/* Count the allocations by code in this range, and fail one of them; 0 fails none. */
void shim_fail_allocation(uintptr_t start, uintptr_t end, long allocation) {
    library_start = start;
    library_end = end;
    allocations = 0;
    failing_allocation = allocation;
}

long shim_allocations(void) { return allocations; }

void shim_record(int descriptor) { recording = descriptor; }

static void put(const void *data, size_t size) {
    const char *next = data;
    while (size) {
        long written = syscall(SYS_write, recording, next, size);
        if (written <= 0) _exit(CRASHED + 1);
        next += written;
        size -= written;
    }
}

static void record(char what, uint64_t file, uint64_t offset, const void *one, size_t one_size,
                   const char *other) {
    if (recording < 0) return;
    size_t other_size = other ? strlen(other) : 0;
    char head[128];
    put(head, snprintf(head, sizeof head, "%c %lu %lu %zu %zu\n", what, (unsigned long)file,
                       (unsigned long)offset, one_size, other_size));
    put(one, one_size);
    put(other, other_size);
}

/* Record that a step of the script is acknowledged. */
void shim_acknowledge(long step) { record('A', step, 0, "", 0, NULL); }

static int is_below(const char *path) {
    return directory_length && path && strncmp(path, directory, directory_length) == 0;
}

static int is_ours(int descriptor) {
    return descriptor >= 0 && descriptor < MAX_DESCRIPTORS && is_watched[descriptor];
}

/* Count a call; return the error that it must fail with. `grows` means that it needs space. */
static int reach(int grows) {
    calls++;
    if (calls == failing_call) {
        if (failing_error == ENOSPC) is_full = 1;
        else return failing_error ? failing_error : -1;
    }
    return is_full && grows ? ENOSPC : 0;
}

static int refuse(int error) {
    if (error < 0) _exit(CRASHED);
    errno = error;
    return -1;
}

static uint64_t inode_of(int descriptor) {
    struct stat state;
    return fstat(descriptor, &state) ? 0 : state.st_ino;
}

static int open_file(int base, const char *path, int flags, mode_t mode) {
    int ours = is_below(path), is_new = 0, error;
    if (ours) {
        is_new = (flags & O_CREAT) && syscall(SYS_faccessat, base, path, F_OK) != 0;
        if ((error = reach(is_new))) return refuse(error);
    }
    int descriptor = syscall(SYS_openat, base, path, flags, mode);
    if (descriptor >= 0 && descriptor < MAX_DESCRIPTORS) is_watched[descriptor] = ours;
    if (ours && descriptor >= 0) {
        if (is_new) record('C', inode_of(descriptor), 0, path, strlen(path), NULL);
        else if (flags & O_TRUNC) record('T', inode_of(descriptor), 0, "", 0, NULL);
    }
    return descriptor;
}

#define MODE(flags, mode)                      \
    mode_t mode = 0;                           \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {   \
        va_list rest;                          \
        va_start(rest, flags);                 \
        mode = va_arg(rest, mode_t);           \
        va_end(rest);                          \
    }

int open(const char *path, int flags, ...) { MODE(flags, mode) return open_file(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return open_file(AT_FDCWD, path, flags, mode); }
int openat(int base, const char *path, int flags, ...) { MODE(flags, mode) return open_file(base, path, flags, mode); }
int openat64(int base, const char *path, int flags, ...) { MODE(flags, mode) return open_file(base, path, flags, mode); }

int close(int descriptor) {
    if (is_ours(descriptor)) is_watched[descriptor] = 0;
    return syscall(SYS_close, descriptor);
}

/* A full disk, a disk error and a crash leave half of the data. */
static ssize_t write_file(int descriptor, const void *data, size_t size, off_t offset, int moves) {
    int ours = is_ours(descriptor), error = ours ? reach(1) : 0;
    size_t written_size = error ? size / 2 : size;
    if (ours) record('W', inode_of(descriptor), offset, data, written_size, NULL);
    ssize_t written = moves ? syscall(SYS_write, descriptor, data, written_size)
                            : syscall(SYS_pwrite64, descriptor, data, written_size, offset);
    return error ? refuse(error) : written;
}

ssize_t write(int descriptor, const void *data, size_t size) {
    off_t offset = 0;
    if (is_ours(descriptor)) {
        int flags = fcntl(descriptor, F_GETFL);
        offset = lseek(descriptor, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
    }
    return write_file(descriptor, data, size, offset, 1);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) { return write_file(descriptor, data, size, offset, 0); }
ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset) { return write_file(descriptor, data, size, offset, 0); }

static int truncate_file(int descriptor, off_t size) {
    int error;
    if (is_ours(descriptor)) {
        if ((error = reach(1))) return refuse(error);
        record('T', inode_of(descriptor), size, "", 0, NULL);
    }
    return syscall(SYS_ftruncate, descriptor, size);
}

int ftruncate(int descriptor, off_t size) { return truncate_file(descriptor, size); }
int ftruncate64(int descriptor, off_t size) { return truncate_file(descriptor, size); }

/* The machine keeps running, so that nothing has to reach the disk. The record says what would. */
static int sync_file(int descriptor, long number) {
    int error;
    if (!is_ours(descriptor)) return syscall(number, descriptor);
    if ((error = reach(0))) return refuse(error);
    struct stat state;
    if (recording >= 0 && fstat(descriptor, &state) == 0) {
        char link[64], path[PATH_MAX] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        if (S_ISDIR(state.st_mode) && readlink(link, path, sizeof path - 1) > 0)
            record('D', 0, 0, path, strlen(path), NULL);
        else record('S', state.st_ino, 0, "", 0, NULL);
    }
    return 0;
}

int fsync(int descriptor) { return sync_file(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_file(descriptor, SYS_fdatasync); }

int rename(const char *from, const char *to) {
    int ours = is_below(from) || is_below(to), error;
    if (ours && (error = reach(1))) return refuse(error);
    int result = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (ours && result == 0) record('R', 0, 0, from, strlen(from), to);
    return result;
}

int link(const char *from, const char *to) {
    int ours = is_below(to), error;
    if (ours && (error = reach(1))) return refuse(error);
    int result = syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (ours && result == 0) record('L', 0, 0, from, strlen(from), to);
    return result;
}

int unlink(const char *path) {
    int ours = is_below(path), error;
    if (ours && (error = reach(0))) return refuse(error);
    int result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (ours && result == 0) record('U', 0, 0, path, strlen(path), NULL);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    int ours = is_below(path), error;
    if (ours && (error = reach(1))) return refuse(error);
    int result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (ours && result == 0) record('M', 0, 0, path, strlen(path), NULL);
    return result;
}

static int may_allocate(uintptr_t caller) {
    if (caller < library_start || caller >= library_end) return 1;
    allocations++;
    return allocations != failing_allocation;
}

void *malloc(size_t size) {
    if (may_allocate((uintptr_t)__builtin_return_address(0))) return __libc_malloc(size);
    errno = ENOMEM;
    return NULL;
}

void *realloc(void *memory, size_t size) {
    if (may_allocate((uintptr_t)__builtin_return_address(0))) return __libc_realloc(memory, size);
    errno = ENOMEM;
    return NULL;
}
