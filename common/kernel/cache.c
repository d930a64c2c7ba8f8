#define XXH_INLINE_ALL
#include "kernel/cache.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
  NAME_DIGITS = 2 * sizeof(gki_cache_key),
  NAME_BYTES = NAME_DIGITS + 64,
  LIMIT_MIB = 256,
  MOST_BYTES = 1 << 30, /* of one image */
  STALE_SECONDS = 3600, /* a file that was being written for this long was left behind by its process */
};
static const char suffix[] = ".gk", unfinished[] = ".part";

/* In front of the image. Every byte of it is checked. */
typedef struct header {
  char magic[8];
  uint32_t version, reserved;
  uint64_t size;
  gki_cache_key key;
  XXH128_canonical_t hash; /* of the image */
} header;
static const char magic[sizeof((header *)0)->magic] = {'g', 'k', ' ', 'i', 'm', 'a', 'g', 'e'};
enum { VERSION = 1 };

/* ---- keys -------------------------------------------------------------------------------------------------------- */

gki_cache_key gki_cache_key_of(const gki_cache_part *parts, size_t count) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (size_t k = 0; k < count; ++k) {
    const uint64_t bytes = parts[k].bytes;
    XXH3_128bits_update(&state, &bytes, sizeof bytes);
    if (bytes) XXH3_128bits_update(&state, parts[k].at, parts[k].bytes);
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  gki_cache_key key;
  memcpy(key.hash, canonical.digest, sizeof key.hash);
  return key;
}

static void name_of(const gki_cache_key *key, char name[NAME_BYTES]) {
  for (size_t k = 0; k < sizeof key->hash; ++k) snprintf(name + 2 * k, 3, "%02x", key->hash[k]);
  memcpy(name + NAME_DIGITS, suffix, sizeof suffix);
}

static XXH128_canonical_t hash_of(const void *bytes, size_t size) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
  return canonical;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* False: no cache is wanted, or no variable names a folder. */
static bool name_folder(char path[PATH_MAX], char *why, size_t why_bytes) {
  /* secure: the caller of a program with another user's rights mustn't choose where that program writes. */
  const char *own = secure_getenv("GK_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int length = -1;
  if (own && (!own[0] || strcmp(own, "off") == 0 || strcmp(own, "0") == 0)) {
    snprintf(why, why_bytes, "$GK_CACHE turns it off");
    return false;
  }
  if (own) length = snprintf(path, PATH_MAX, "%s", own);
  else if (xdg && xdg[0] == '/') length = snprintf(path, PATH_MAX, "%s/gk", xdg); /* XDG: relative paths are ignored */
  else if (home && home[0] == '/') length = snprintf(path, PATH_MAX, "%s/.cache/gk", home);
  if (length > 0 && length < PATH_MAX) return true;
  snprintf(why, why_bytes, "%s", length < 0 ? "neither $GK_CACHE nor $XDG_CACHE_HOME nor $HOME names a folder"
                                            : "the name of its folder is too long");
  return false;
}

static void make_folders(const char *path) {
  char part[PATH_MAX];
  snprintf(part, sizeof part, "%s", path);
  for (char *at = part + 1; (at = strchr(at, '/')); ++at) {
    *at = 0;
    (void)mkdir(part, S_IRWXU); /* a failure shows when the folder is opened */
    *at = '/';
  }
  (void)mkdir(part, S_IRWXU);
}

static bool is_mine(const struct stat *status) {
  return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* -1: there is no folder; `why` has the reason, as a sentence. */
static int open_folder(char path[PATH_MAX], char *why, size_t why_bytes) {
  enum { FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
  path[0] = 0;
  if (!name_folder(path, why, why_bytes)) return -1;
  int folder = open(path, FLAGS);
  if (folder < 0 && errno == ENOENT) {
    make_folders(path);
    folder = open(path, FLAGS);
  }
  struct stat status;
  if (folder < 0 || fstat(folder, &status) != 0) {
    snprintf(why, why_bytes, "%s can't be opened: %s", path, strerror(errno));
  } else if (!is_mine(&status)) {
    snprintf(why, why_bytes, "%s %s; make it yours alone (chmod go-w), or name another one in $GK_CACHE", path,
             status.st_uid == geteuid() ? "can be written to by others" : "belongs to another user");
  } else return folder;
  if (folder >= 0) close(folder);
  return -1;
}

static int open_or_log(void) {
  static atomic_bool reported; /* logs it once, not for each compiled source */
  char path[PATH_MAX], why[PATH_MAX + 256];
  int folder = open_folder(path, why, sizeof why);
  if (folder < 0 && !atomic_exchange(&reported, true))
    gk_log(path[0] ? GK_LOG_WARN : GK_LOG_INFO, "what is compiled is not kept: %s", why);
  return folder;
}

void gki_cache_describe(char *folder, size_t folder_bytes, char *why, size_t why_bytes) {
  char path[PATH_MAX];
  if (name_folder(path, why, why_bytes) && access(path, F_OK) != 0 && errno == ENOENT) {
    snprintf(folder, folder_bytes, "%s", path);
    snprintf(why, why_bytes, "it isn't there yet; what is compiled first makes it");
    return;
  }
  int at = open_folder(path, why, why_bytes);
  snprintf(folder, folder_bytes, "%s", at < 0 ? "" : path);
  if (at < 0) return;
  close(at);
  snprintf(why, why_bytes, "%s", "");
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool read_all(int file, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t count = read(file, (char *)bytes + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += (size_t)count;
  }
  return true;
}

typedef enum found { FOUND, NO_ENTRY, NO_MEMORY } found;

static found read_entry(int file, const gki_cache_key *key, void **bytes, size_t *size) {
  header head;
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || !is_mine(&status)) return NO_ENTRY;
  if (!read_all(file, &head, sizeof head)) return NO_ENTRY;
  if (memcmp(head.magic, magic, sizeof magic) != 0 || head.version != VERSION || head.reserved) return NO_ENTRY;
  if (memcmp(&head.key, key, sizeof *key) != 0) return NO_ENTRY;
  if (head.size > MOST_BYTES || head.size + sizeof head != (uint64_t)status.st_size) return NO_ENTRY;
  char *read = gk_host_alloc((size_t)head.size + 1);
  if (!read) return NO_MEMORY;
  XXH128_canonical_t hash = {{0}};
  if (read_all(file, read, (size_t)head.size)) hash = hash_of(read, (size_t)head.size);
  if (memcmp(&hash, &head.hash, sizeof hash) != 0) {
    gk_host_free(read);
    return NO_ENTRY;
  }
  *bytes = read;
  *size = (size_t)head.size;
  return FOUND;
}

/* Removes what isn't an entry: a file, a link or a folder. A folder that isn't empty is renamed. */
static void clear_place(int folder, const char *name) {
  char aside[NAME_BYTES + 8];
  if (unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0) return;
  snprintf(aside, sizeof aside, "%s.aside", name);
  (void)renameat(folder, name, folder, aside);
}

bool gki_cache_find(const gki_cache_key *key, void **bytes, size_t *size) {
  char name[NAME_BYTES];
  int folder = open_or_log();
  if (folder < 0) return false;
  name_of(key, name);
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  const bool is_link = file < 0 && errno == ELOOP;
  const found answer = file < 0 ? NO_ENTRY : read_entry(file, key, bytes, size);
  if (answer == FOUND) (void)futimens(file, NULL); /* marks it as used now; a failure doesn't matter */
  else if (is_link || (file >= 0 && answer == NO_ENTRY)) clear_place(folder, name);
  if (file >= 0) close(file);
  close(folder);
  return answer == FOUND;
}

/* ---- making room ------------------------------------------------------------------------------------------------- */

typedef struct entry {
  char name[NAME_BYTES];
  struct timespec used;
  uint64_t bytes;
} entry;

static uint64_t limit_bytes(void) {
  const char *text = secure_getenv("GK_CACHE_LIMIT");
  const bool is_number = text && text[0] && !text[strspn(text, "0123456789")];
  const unsigned long long mib = is_number ? strtoull(text, NULL, 10) : LIMIT_MIB;
  return mib > UINT64_MAX >> 20 ? UINT64_MAX : (uint64_t)mib << 20;
}

static bool ends_in(const char *name, const char *end) {
  size_t length = strlen(name), tail = strlen(end);
  return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* The folder may also hold files of other programs. */
static bool is_ours(const char *name) {
  return strspn(name, "0123456789abcdef") == NAME_DIGITS && name[NAME_DIGITS] == '.';
}

static bool is_entry(const char *name) {
  return is_ours(name) && strcmp(name + NAME_DIGITS, suffix) == 0;
}

static int compare_entries(const void *a, const void *b) {
  const entry *left = a, *right = b;
  if (left->used.tv_sec != right->used.tv_sec) return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
  return (left->used.tv_nsec > right->used.tv_nsec) - (left->used.tv_nsec < right->used.tv_nsec);
}

typedef struct entries {
  entry *at;
  size_t count, capacity;
  uint64_t bytes;
} entries;

static bool add_entry(entries *all, const char *name, const struct stat *status) {
  if (all->count == all->capacity) {
    const size_t wanted = all->capacity ? 2 * all->capacity : 64;
    entry *grown = gki_resize(all->at, wanted * sizeof *all->at);
    if (!grown) return false;
    all->at = grown;
    all->capacity = wanted;
  }
  entry *one = &all->at[all->count++];
  memcpy(one->name, name, NAME_DIGITS + sizeof suffix);
  one->used = status->st_mtim;
  one->bytes = (uint64_t)status->st_size;
  all->bytes += one->bytes;
  return true;
}

/* The folder's entries and their size. Half-written files that were left behind are removed. */
static entries list_entries(int folder) {
  entries all = {.at = NULL};
  int again = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR *listing = again < 0 ? NULL : fdopendir(again);
  if (!listing && again >= 0) close(again);
  if (!listing) return all;
  rewinddir(listing);
  for (struct dirent *at; (at = readdir(listing));) {
    struct stat status;
    if (fstatat(folder, at->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    if (is_ours(at->d_name) && ends_in(at->d_name, unfinished) && time(NULL) - status.st_mtime > STALE_SECONDS)
      (void)unlinkat(folder, at->d_name, 0);
    if (is_entry(at->d_name) && !add_entry(&all, at->d_name, &status)) break; /* a later process removes the rest */
  }
  closedir(listing);
  return all;
}

static void make_room(int folder, uint64_t limit) {
  entries all = list_entries(folder);
  if (all.bytes > limit) qsort(all.at, all.count, sizeof *all.at, compare_entries);
  for (size_t k = 0; k < all.count && all.bytes > limit; ++k) {
    (void)unlinkat(folder, all.at[k].name, 0);
    all.bytes -= all.at[k].bytes;
  }
  gk_host_free(all.at);
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static bool write_all(int file, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t count = write(file, (const char *)bytes + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = ENOSPC; /* a write of some bytes never returns 0; if one did, the loop wouldn't end */
    if (count <= 0) return false;
    done += (size_t)count;
  }
  return true;
}

static bool write_entry(int file, const gki_cache_key *key, const void *bytes, size_t size) {
  header head = {.version = VERSION, .size = size, .key = *key, .hash = hash_of(bytes, size)};
  memcpy(head.magic, magic, sizeof magic);
  return write_all(file, &head, sizeof head) && write_all(file, bytes, size);
}

/* A write beyond the process's limit on file sizes would end the process. */
static bool block_signal(sigset_t *before) {
  sigset_t one, pending;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  return sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ) &&
         pthread_sigmask(SIG_BLOCK, &one, before) == 0;
}

static void restore_signals(const sigset_t *before) {
  const struct timespec now = {0};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  while (sigtimedwait(&one, NULL, &now) == -1 && errno == EINTR) {}
  (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Beside its final name. False: errno has the reason. */
static bool write_beside(int folder, const char *name, const gki_cache_key *key, const void *bytes, size_t size) {
  static atomic_uint number;
  char beside[NAME_BYTES];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(beside, sizeof beside, "%.*s.%lx.%lx.%x%s", NAME_DIGITS, name, (unsigned long)getpid(),
           (unsigned long)now.tv_nsec, atomic_fetch_add(&number, 1u), unfinished);
  int file = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  const bool written = write_entry(file, key, bytes, size);
  int error = errno;
  const bool closed = close(file) == 0; /* some file systems report a full disk only now */
  if (written && closed && renameat(folder, beside, folder, name) == 0) return true;
  if (written) error = errno;
  (void)unlinkat(folder, beside, 0);
  errno = error;
  return false;
}

void gki_cache_keep(const gki_cache_key *key, const void *bytes, size_t size) {
  char name[NAME_BYTES];
  const uint64_t limit = limit_bytes();
  if (size > MOST_BYTES || size > limit || limit - size < sizeof(header)) return;
  int folder = open_or_log();
  if (folder < 0) return;
  name_of(key, name);
  sigset_t before;
  if (block_signal(&before)) {
    const bool kept = write_beside(folder, name, key, bytes, size);
    const int error = errno;
    restore_signals(&before);
    if (kept) make_room(folder, limit);
    else gk_log(GK_LOG_INFO, "what was compiled isn't kept: %s", strerror(error));
  }
  close(folder);
}
