/* A closed-loop load generator for length-prefixed frames: it sends prepared frames and counts the answers.
 *
 *   load HOST PORT CONNECTIONS DEPTH SECONDS FRAMES
 *
 * FRAMES is a file of whole frames, one after the other; connection c sends each CONNECTIONS-th from frame c on. Each
 * connection keeps DEPTH requests without an answer. Prints one JSON line: answers, errors (answers whose bytes 8-10
 * of a binary header hold a code other than 0), seconds, and latencies in microseconds. Answers are paired with
 * requests in the order of sending, so a latency is exact at depth 1 and of the connection's queue above it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 64
#define BUCKETS 4096 /* 64 per power of two, from 1 ns up */

struct connection {
  int fd, next, waiting;         /* frame to send next, answers outstanding */
  const char *out;               /* rest of what is being sent */
  char *kept;                    /* the same when it had to be copied */
  size_t out_length;
  uint32_t left;                 /* bytes of the current answer still to come */
  unsigned char head[12];        /* first bytes of the current answer */
  int head_length;
  uint64_t sent[MAX_DEPTH];      /* when the outstanding requests were sent, a ring */
  int first, last;
};

static char *frames;
static size_t *offsets, *lengths;
static int frame_count, stride;
static uint64_t histogram[BUCKETS], answers, errors;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void record(uint64_t ns) {
  int power = 63 - __builtin_clzll(ns | 64);
  int bucket = (power - 6) * 64 + (int)((ns >> (power - 6)) & 63);
  histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static double quantile_us(double q) {
  uint64_t want = (uint64_t)(q * answers), seen = 0;
  for (int b = 0; b < BUCKETS; b++) {
    seen += histogram[b];
    if (seen > want) return (double)((uint64_t)(64 + b % 64) << (b / 64)) / 1000.0;
  }
  return 0;
}

static void read_frames(const char *path) {
  int fd = open(path, O_RDONLY);
  struct stat s;
  if (fd < 0 || fstat(fd, &s) < 0) die(path);
  frames = malloc(s.st_size);
  for (off_t got = 0; got < s.st_size;) {
    ssize_t n = read(fd, frames + got, s.st_size - got);
    if (n <= 0) die("read frames");
    got += n;
  }
  close(fd);
  for (size_t at = 0; at < (size_t)s.st_size; frame_count++) {
    uint32_t n;
    memcpy(&n, frames + at, 4);
    offsets = realloc(offsets, (frame_count + 1) * sizeof *offsets);
    lengths = realloc(lengths, (frame_count + 1) * sizeof *lengths);
    offsets[frame_count] = at;
    lengths[frame_count] = 4 + ntohl(n);
    at += lengths[frame_count];
  }
  if (!frame_count) die("no frames");
}

static int open_connection(const char *host, int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, host, &a.sin_addr);
  if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* Fills the connection up to DEPTH; small frames of one round go out in one write. */
static void send_some(struct connection *c, int depth, int epoll) {
  static char joined[65536];
  for (;;) {
    if (!c->out_length) {
      if (c->waiting >= depth) break;
      size_t length = 0;
      uint64_t t = now_ns();
      while (c->waiting < depth) {
        size_t n = lengths[c->next];
        if (length && length + n > sizeof joined) break;
        if (n > sizeof joined) {
          c->out = frames + offsets[c->next];
        } else {
          memcpy(joined + length, frames + offsets[c->next], n);
          c->out = joined;
        }
        length += n;
        c->next = (c->next + stride) % frame_count;
        c->sent[c->last] = t;
        c->last = (c->last + 1) % MAX_DEPTH;
        c->waiting++;
        if (n > sizeof joined) break;
      }
      c->out_length = length;
    }
    ssize_t n = write(c->fd, c->out, c->out_length);
    if (n < 0 && errno != EAGAIN) die("write");
    if (n > 0) c->out += n, c->out_length -= n;
    if (!c->out_length && c->kept) {
      free(c->kept);
      c->kept = NULL;
    }
    if (c->out_length) {
      /* the joined buffer is shared, so what is left of it must be kept */
      if (c->out >= joined && c->out < joined + sizeof joined) {
        c->kept = malloc(c->out_length);
        memcpy(c->kept, c->out, c->out_length);
        c->out = c->kept;
      }
      struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
      epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
      return;
    }
  }
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void take_answers(struct connection *c, int counting) {
  static unsigned char buffer[1 << 18];
  ssize_t n = read(c->fd, buffer, sizeof buffer);
  if (n == 0 || (n < 0 && errno != EAGAIN)) die("the server closed a connection");
  uint64_t t = now_ns();
  for (ssize_t i = 0; i < n;) {
    if (!c->left) {
      while (c->head_length < 12 && i < n) c->head[c->head_length++] = buffer[i++];
      if (c->head_length < 12) return;
      uint32_t length;
      memcpy(&length, c->head, 4);
      c->left = ntohl(length) - 8;
      if (c->left) continue;
    } else {
      ssize_t take = n - i < (ssize_t)c->left ? n - i : (ssize_t)c->left;
      i += take;
      c->left -= take;
    }
    if (!c->left) {
      if (counting) {
        answers++;
        record(t - c->sent[c->first]);
        if (c->head[4] == 1 && (c->head[8] || c->head[9])) errors++;
      }
      c->first = (c->first + 1) % MAX_DEPTH;
      c->waiting--;
      c->head_length = 0;
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 7) return fprintf(stderr, "usage: load HOST PORT CONNECTIONS DEPTH SECONDS FRAMES\n"), 2;
  int count = stride = atoi(argv[3]), depth = atoi(argv[4]);
  if (depth < 1 || depth > MAX_DEPTH) return fprintf(stderr, "DEPTH: 1 to %d\n", MAX_DEPTH), 2;
  double seconds = atof(argv[5]);
  read_frames(argv[6]);
  int epoll = epoll_create1(0);
  struct connection *all = calloc(count, sizeof *all);
  for (int i = 0; i < count; i++) {
    all[i].fd = open_connection(argv[1], atoi(argv[2]));
    all[i].next = i % frame_count;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &all[i]};
    epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &e);
    send_some(&all[i], depth, epoll);
  }
  uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), t;
  while ((t = now_ns()) < end) {
    struct epoll_event ready[256];
    int n = epoll_wait(epoll, ready, 256, 100);
    for (int i = 0; i < n; i++) {
      struct connection *c = ready[i].data.ptr;
      if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take_answers(c, 1);
      send_some(c, depth, epoll);
    }
  }
  printf("{\"answers\":%llu,\"errors\":%llu,\"seconds\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n",
         (unsigned long long)answers, (unsigned long long)errors, (t - begin) / 1e9, quantile_us(0.5),
         quantile_us(0.99), quantile_us(0.999));
  return 0;
}
