/* A shim for LD_PRELOAD: it counts what a program asks of the file system below one folder, and makes the nth of these
 * operations go wrong. `faults/mod.rs` compiles and drives it, by the environment:
 *
 *   FAULT_ROOT   the folder, absolute; the program runs in it, so relative paths are below it, too
 *   FAULT_LOG    a file outside of it that gets a line for every operation: number, name, path, `!` if it went wrong
 *   FAULT_KIND   what goes wrong:
 *                  EIO      the operation fails
 *                  ENOSPC   an operation that needs room fails, and so do all such operations after it
 *                  EINTR    an operation that may wait is interrupted by a signal
 *                  short    a read or a write does half of what was asked
 *                  ENOENT   the file or folder vanishes just before: it is moved to where FAULT_VANISHED says
 *                  exit     the process ends, as a kill ends it
 *                for memory, where nothing is logged but the one that went wrong, and the count at the end:
 *                  nomem        an allocation, by the program or by any library, is refused
 *                  nomem-large  one of 64 KiB or more
 *                  nomem-on     one of 64 KiB or more, and all such that come after it
 *   FAULT_STACKS if it is there and FAULT_AT is 0, the first allocation of each call stack is logged
 *   FAULT_AT     n, counted from 1 among the operations that can go wrong in this way; 0 for none
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* What an operation does, by which each kind of fault chooses. */
enum { LOOKS = 1, READS = 2, WRITES = 4, NEEDS_ROOM = 8, WAITS = 16 };
enum kind { NONE, EIO_, ENOSPC_, EINTR_, SHORT, ENOENT_, EXIT, NOMEM, NOMEM_LARGE, NOMEM_ON };
#define LARGE_BYTES 65536

#define STACK_DEPTH 8 /* The innermost: with all of them nearly each is one of its own. */
#define STACKS_MAX 65536

#define SHORTEN (-1)
#define FILES_MAX 1024

static const char *root;
static size_t root_length;
static enum kind kind;
static long fault_at;
static int log_file = -1;
static int notes_stacks;
static atomic_long counted;
static char *paths[FILES_MAX]; /* of each open file below the root */

__attribute__((constructor)) static void start(void) {
    static const char *const names[] = {"",       "EIO",  "ENOSPC", "EINTR",       "short",
                                        "ENOENT", "exit", "nomem",  "nomem-large", "nomem-on"};
    const char *wanted = getenv("FAULT_KIND"), *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
    root = getenv("FAULT_ROOT");
    root_length = root ? strlen(root) : 0;
    fault_at = at ? atol(at) : 0;
    notes_stacks = !fault_at && getenv("FAULT_STACKS");
    for (int i = 1; wanted && i <= NOMEM_ON; i++)
        if (!strcmp(wanted, names[i])) kind = i;
    if (log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The whole path, in `whole`; NULL for one that is not below the root. */
static const char *below(int folder, const char *path, char *whole) {
    const char *start = "";
    if (!root || !path) return NULL;
    if (path[0] != '/') {
        start = folder == AT_FDCWD ? root : folder >= 0 && folder < FILES_MAX ? paths[folder] : NULL;
        if (!start) return NULL;
        snprintf(whole, PATH_MAX, path[0] ? "%s/%s" : "%s", start, path);
    } else {
        snprintf(whole, PATH_MAX, "%s", path);
    }
    return strncmp(whole, root, root_length) || whole[root_length] != '/' ? NULL : whole;
}

static const char *path_of(int file) { return file >= 0 && file < FILES_MAX ? paths[file] : NULL; }

static int opened(int file, const char *path) {
    if (path && file >= 0 && file < FILES_MAX) paths[file] = strdup(path);
    return file;
}

static int can_go_wrong(int does) {
    switch (kind) {
    case ENOSPC_: return does & NEEDS_ROOM;
    case EINTR_: return does & WAITS;
    case SHORT: return does & (READS | WRITES);
    case ENOENT_: return does & LOOKS;
    case NONE: case NOMEM: case NOMEM_LARGE: case NOMEM_ON: return 0;
    default: return 1;
    }
}

/* What is to go wrong with this operation: an error's number, SHORTEN, or 0 for nothing. */
static int fault(const char *name, const char *path, int does) {
    if (!path || !can_go_wrong(does)) return 0;
    long number = atomic_fetch_add(&counted, 1) + 1;
    int again = kind == ENOSPC_ && fault_at && number > fault_at;
    int wrong = number == fault_at || again;
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%ld %s %s%s\n", number, name, path, wrong ? " !" : "");
    if (log_file >= 0 && syscall(SYS_write, log_file, line, length) < 0) _exit(99);
    if (!wrong) return 0;
    switch (kind) {
    case EIO_: return EIO;
    case ENOSPC_: return ENOSPC;
    case EINTR_: return EINTR;
    case SHORT: return SHORTEN;
    case ENOENT_: syscall(SYS_rename, path, getenv("FAULT_VANISHED")); return 0;
    default: _exit(137);
    }
}

/* The function that this one stands before. */
#define REAL(result, name, ...)                                      \
    static result (*real)(__VA_ARGS__);                              \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

#define FAIL_IF(name, path, does, failed)                            \
    do {                                                             \
        int wrong = fault(name, path, does);                         \
        if (wrong > 0) { errno = wrong; return failed; }             \
    } while (0)

/* Opening. */

static int open_below(int folder, const char *path, int flags, mode_t mode) {
    REAL(int, "openat64", int, const char *, int, ...);
    char whole[PATH_MAX];
    const char *known = below(folder, path, whole);
    FAIL_IF("open", known, WAITS | (flags & O_CREAT ? NEEDS_ROOM : LOOKS), -1);
    return opened(real(folder, path, flags, mode), known);
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

#define OPEN(name)                                                   \
    int name(const char *path, int flags, ...) {                     \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = mode_of(flags, rest);                          \
        va_end(rest);                                                \
        return open_below(AT_FDCWD, path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                 \
    int name(int folder, const char *path, int flags, ...) {         \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = mode_of(flags, rest);                          \
        va_end(rest);                                                \
        return open_below(folder, path, flags, mode);                \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int file) {
    REAL(int, "close", int);
    if (file >= 0 && file < FILES_MAX) paths[file] = NULL;
    return real(file);
}

/* Reading and writing. */

static size_t part(int wrong, size_t count) { return wrong == SHORTEN && count > 1 ? count / 2 : count; }

ssize_t read(int file, void *buffer, size_t count) {
    REAL(ssize_t, "read", int, void *, size_t);
    int wrong = fault("read", path_of(file), READS | WAITS);
    if (wrong > 0) { errno = wrong; return -1; }
    return real(file, buffer, part(wrong, count));
}

ssize_t write(int file, const void *buffer, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int wrong = fault("write", path_of(file), WRITES | WAITS | NEEDS_ROOM);
    if (wrong > 0) { errno = wrong; return -1; }
    return real(file, buffer, part(wrong, count));
}

#define PREAD(name)                                                  \
    ssize_t name(int file, void *buffer, size_t count, off64_t at) { \
        REAL(ssize_t, "pread64", int, void *, size_t, off64_t);      \
        int wrong = fault("pread", path_of(file), READS | WAITS);    \
        if (wrong > 0) { errno = wrong; return -1; }                 \
        return real(file, buffer, part(wrong, count), at);           \
    }
PREAD(pread)
PREAD(pread64)

/* Of a list of buffers, a short operation does the first alone. */
#define VECTOR(name, does)                                           \
    ssize_t name(int file, const struct iovec *list, int count) {    \
        REAL(ssize_t, #name, int, const struct iovec *, int);        \
        int wrong = fault(#name, path_of(file), does | WAITS);       \
        if (wrong > 0) { errno = wrong; return -1; }                 \
        return real(file, list, wrong == SHORTEN && count > 1 ? 1 : count); \
    }
VECTOR(readv, READS)
VECTOR(writev, WRITES | NEEDS_ROOM)

#define ON_FILE(name, does)                                          \
    int name(int file) {                                             \
        REAL(int, #name, int);                                       \
        FAIL_IF(#name, path_of(file), does, -1);                     \
        return real(file);                                           \
    }
ON_FILE(fsync, NEEDS_ROOM | WAITS)
ON_FILE(fdatasync, NEEDS_ROOM | WAITS)

int flock(int file, int how) {
    REAL(int, "flock", int, int);
    FAIL_IF("flock", path_of(file), WAITS, -1);
    return real(file, how);
}

int ftruncate64(int file, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t);
    FAIL_IF("ftruncate", path_of(file), NEEDS_ROOM | WAITS, -1);
    return real(file, length);
}

/* Looking. */

#define STAT(name)                                                   \
    int name(const char *path, struct stat64 *found) {               \
        REAL(int, #name, const char *, struct stat64 *);             \
        char whole[PATH_MAX];                                        \
        FAIL_IF(#name, below(AT_FDCWD, path, whole), LOOKS, -1);     \
        return real(path, found);                                    \
    }
STAT(stat64)
STAT(lstat64)

int fstat64(int file, struct stat64 *found) {
    REAL(int, "fstat64", int, struct stat64 *);
    FAIL_IF("fstat64", path_of(file), 0, -1);
    return real(file, found);
}

int fstatat64(int folder, const char *path, struct stat64 *found, int flags) {
    REAL(int, "fstatat64", int, const char *, struct stat64 *, int);
    char whole[PATH_MAX];
    FAIL_IF("fstatat64", below(folder, path, whole), LOOKS, -1);
    return real(folder, path, found, flags);
}

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    REAL(int, "statx", int, const char *, int, unsigned, struct statx *);
    char whole[PATH_MAX];
    /* With an empty path it is about the open file, which cannot vanish. */
    const char *known = below(folder, path, whole);
    FAIL_IF("statx", known, known && path[0] ? LOOKS : 0, -1);
    return real(folder, path, flags, mask, found);
}

char *realpath(const char *path, char *resolved) {
    REAL(char *, "realpath", const char *, char *);
    char whole[PATH_MAX];
    FAIL_IF("realpath", below(AT_FDCWD, path, whole), LOOKS, NULL);
    return real(path, resolved);
}

/* Folders. */

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    char whole[PATH_MAX];
    const char *known = below(AT_FDCWD, path, whole);
    FAIL_IF("opendir", known, LOOKS, NULL);
    DIR *folder = real(path);
    if (folder) opened(dirfd(folder), known);
    return folder;
}

struct dirent64 *readdir64(DIR *folder) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    FAIL_IF("readdir", path_of(dirfd(folder)), 0, NULL);
    return real(folder);
}

int closedir(DIR *folder) {
    REAL(int, "closedir", DIR *);
    int file = dirfd(folder);
    if (file >= 0 && file < FILES_MAX) paths[file] = NULL;
    return real(folder);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    char whole[PATH_MAX];
    FAIL_IF("mkdir", below(AT_FDCWD, path, whole), NEEDS_ROOM, -1);
    return real(path, mode);
}

#define ON_PATH(name)                                                \
    int name(const char *path) {                                     \
        REAL(int, #name, const char *);                              \
        char whole[PATH_MAX];                                        \
        FAIL_IF(#name, below(AT_FDCWD, path, whole), LOOKS, -1);     \
        return real(path);                                           \
    }
ON_PATH(unlink)
ON_PATH(rmdir)

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    char whole[PATH_MAX];
    FAIL_IF("unlinkat", below(folder, path, whole), LOOKS, -1);
    return real(folder, path, flags);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    char whole[PATH_MAX];
    FAIL_IF("rename", below(AT_FDCWD, from, whole), LOOKS | NEEDS_ROOM, -1);
    return real(from, to);
}

/* Memory. The C library exports its own allocator under these names, too. */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void note(long number, const char *what) {
    char line[64];
    int length = snprintf(line, sizeof line, "%ld %s\n", number, what);
    if (log_file >= 0 && syscall(SYS_write, log_file, line, length) < 0) _exit(99);
}

/* Logs the first allocation of each call stack. */
static void note_stack(long number) {
    static atomic_ulong seen[STACKS_MAX];
    /* Unwinding may allocate, too. */
    static __thread int inside __attribute__((tls_model("initial-exec")));
    void *frames[STACK_DEPTH];
    if (inside) return;
    inside = 1;
    int depth = backtrace(frames, STACK_DEPTH);
    inside = 0;
    unsigned long hash = 14695981039346656037ul;
    for (int i = 0; i < depth; i++) hash = (hash ^ (unsigned long)frames[i]) * 1099511628211ul;
    hash |= 1;
    for (unsigned long i = hash >> 32, tries = 0; tries < STACKS_MAX; i++, tries++) {
        unsigned long found = 0;
        if (atomic_compare_exchange_strong(&seen[i % STACKS_MAX], &found, hash)) {
            note(number, "stack");
            return;
        }
        if (found == hash) return;
    }
}

static int refused(size_t size) {
    if (kind < NOMEM || (kind != NOMEM && size < LARGE_BYTES)) return 0;
    long number = atomic_fetch_add(&counted, 1) + 1;
    if (notes_stacks) note_stack(number);
    if (!fault_at || number < fault_at || (number > fault_at && kind != NOMEM_ON)) return 0;
    if (number == fault_at) {
        char what[32];
        snprintf(what, sizeof what, "refused %zu !", size);
        note(number, what);
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return refused(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refused(count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return refused(size) ? NULL : __libc_realloc(block, size); }
void *memalign(size_t to, size_t size) { return refused(size) ? NULL : __libc_memalign(to, size); }
void *aligned_alloc(size_t to, size_t size) { return memalign(to, size); }
int posix_memalign(void **block, size_t to, size_t size) {
    void *given = memalign(to, size);
    if (!given) return ENOMEM;
    *block = given;
    return 0;
}

__attribute__((destructor)) static void end(void) {
    if (kind >= NOMEM) note(atomic_load(&counted), "allocations");
}
