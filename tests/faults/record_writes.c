/* Records what a process writes to the files of $RECORD_FOLDER, in order, into $RECORD_LOG.

   LD_PRELOAD puts these functions before those of libc. A flush is recorded and left out: only
   the record has to survive. One lock keeps the record in the order of the calls. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct __attribute__((packed)) record {
    char operation;
    uint16_t name_length;
    int64_t offset;
    int64_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The part of a path below the folder; NULL for a file elsewhere. */
static const char *below(const char *path) {
    const char *folder = getenv("RECORD_FOLDER");
    size_t length = strlen(folder);
    if (strncmp(path, folder, length)) return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : "";
}

static const char *name_of(int file, char *path) {
    char link[64] = "/proc/self/fd/";
    char digits[12], *digit = digits + sizeof digits;
    *--digit = 0;
    for (int rest = file; rest || !*digit; rest /= 10) *--digit = '0' + rest % 10;
    strcat(link, digit);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    return below(path);
}

static void record(char operation, const char *name, int64_t offset, const void *data,
                   int64_t length) {
    static int file = -1;
    if (file < 0)
        file = syscall(SYS_openat, AT_FDCWD, getenv("RECORD_LOG"),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct record head = {operation, strlen(name), offset, length};
    struct iovec parts[] = {{&head, sizeof head},
                            {(void *)name, head.name_length},
                            {(void *)data, data ? length : 0}};
    ssize_t expected = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
    if (syscall(SYS_writev, file, parts, 3) != expected) abort();
}

static int64_t recorded(char operation, int file, int64_t offset, const void *data,
                        int64_t length, int64_t (*call)(int, int64_t, const void *, int64_t)) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (!name) return call(file, offset, data, length);
    pthread_mutex_lock(&lock);
    int64_t result = call(file, offset, data, length);
    if (result >= 0) record(operation, name, offset, data, data ? result : length);
    pthread_mutex_unlock(&lock);
    return result;
}

static int64_t do_pwrite(int file, int64_t offset, const void *data, int64_t length) {
    return syscall(SYS_pwrite64, file, data, length, offset);
}

static int64_t do_write(int file, int64_t offset, const void *data, int64_t length) {
    return syscall(SYS_write, file, data, length);
}

static int64_t do_truncate(int file, int64_t offset, const void *data, int64_t length) {
    return syscall(SYS_ftruncate, file, length);
}

static int64_t do_flush(int file, int64_t offset, const void *data, int64_t length) {
    return 0;
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    return recorded('w', file, offset, data, length, do_pwrite);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    return recorded('w', file, offset, data, length, do_pwrite);
}

ssize_t write(int file, const void *data, size_t length) {
    return recorded('w', file, lseek(file, 0, SEEK_CUR), data, length, do_write);
}

int ftruncate64(int file, off64_t length) {
    return recorded('t', file, 0, NULL, length, do_truncate);
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int fsync(int file) { return recorded('s', file, 0, NULL, 0, do_flush); }

int fdatasync(int file) { return fsync(file); }

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    pthread_mutex_lock(&lock);
    int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (file >= 0 && flags & O_CREAT && below(path)) record('c', below(path), 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return file;
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));

static int two_names(char operation, long call, const char *from, const char *to) {
    pthread_mutex_lock(&lock);
    int result = syscall(call, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!result && below(from)) record(operation, below(from), 0, below(to), strlen(below(to)));
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    return two_names('r', SYS_renameat2, from, to);
}

int link(const char *from, const char *to) { return two_names('l', SYS_linkat, from, to); }

int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!result && below(path)) record('u', below(path), 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
