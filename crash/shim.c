/* Preloaded into the server for power-loss runs: notes every write and every sync of a regular file in the log
 * POWER_LOSS_LOG, so that the harness can afterwards take back what was not synced. It changes no call's result. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <stdio.h>

struct record { uint64_t kind, inode, offset, length; };
enum { WRITE = 1, SYNC = 2 };

static int log_descriptor = -1;

__attribute__((constructor)) static void open_log(void) {
  const char *path = getenv("POWER_LOSS_LOG");
  if (path) log_descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Regular files only; the log itself and sockets are nobody's business. */
static int inode_of(int descriptor, uint64_t *inode) {
  struct stat about;
  if (log_descriptor < 0 || descriptor == log_descriptor || fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  *inode = about.st_ino;
  return 1;
}

static void note(uint64_t kind, uint64_t inode, uint64_t offset, uint64_t length) {
  struct record record = { kind, inode, offset, length };
  syscall(SYS_write, log_descriptor, &record, sizeof record);
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
  uint64_t inode;
  if (inode_of(descriptor, &inode)) {
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    if (fcntl(descriptor, F_GETFL) & O_APPEND) offset = lseek(descriptor, 0, SEEK_END);
    note(WRITE, inode, offset, length);
  }
  return syscall(SYS_write, descriptor, bytes, length);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  uint64_t inode;
  if (inode_of(descriptor, &inode)) {
    uint64_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    note(WRITE, inode, lseek(descriptor, 0, SEEK_CUR), length);
  }
  return syscall(SYS_writev, descriptor, parts, count);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
  uint64_t inode;
  if (inode_of(descriptor, &inode)) note(WRITE, inode, offset, length);
  return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return pwrite64(descriptor, bytes, length, offset);
}

/* A sync covers what was written before it began: noted only when it has succeeded. */
int fsync(int descriptor) {
  uint64_t inode;
  int result = syscall(SYS_fsync, descriptor);
  if (result == 0 && inode_of(descriptor, &inode)) note(SYNC, inode, 0, 0);
  return result;
}

int fdatasync(int descriptor) {
  uint64_t inode;
  int result = syscall(SYS_fdatasync, descriptor);
  if (result == 0 && inode_of(descriptor, &inode)) note(SYNC, inode, 0, 0);
  return result;
}
