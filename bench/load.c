/* A load generator for RocketMQ's frames, on one core, closed and open loop. Requests have binary headers; answers
 * may have JSON headers all the same, which is what Java's server does by default.
 *
 *   load HOST PORT CONNECTIONS:FRAMES...     opens all connections, then obeys lines of its standard input
 *   load clock                               prints for how long the clock of this core stands still
 *
 * Each CONNECTIONS:FRAMES is a stream, numbered from 0. FRAMES is a file of whole requests, one after the other;
 * connection c sends each CONNECTIONS-th from frame c on, round and round, with opaques of its own.
 *
 * A line is SECONDS STREAM=MODE...: the streams that run together, for how long, and how:
 *   closed:DEPTH    each connection keeps DEPTH requests without an answer
 *   open:PER_SECOND request i is due i / PER_SECOND after the start, over the connections in turn, whether or not
 *                   others have been answered; its latency counts from when it was due, not from when it was sent
 *   once            every frame of the file, all at once; SECONDS does not matter
 * The answer to a line is one JSON array with an object per running stream: sent, answers, errors (answers with a code
 * other than 0), lost (no answer within GRACE_S after the end; they count in the latencies), seconds until the last
 * answer, latencies in microseconds, and late_us: by how much this program sent too late at worst (open). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef GRACE_S
#define GRACE_S 10.0
#endif
#define CODE_AT 8           /* in a frame with a binary header */
#define OPAQUE_AT 13
#define HEAD 1024           /* bytes of an answer that are looked at, at most */
#define ANSWERED 0          /* in connection.due */
#define LOST UINT64_MAX
#define BUCKETS (64 * 40)   /* 64 per power of two, from 64 ns up */
#define STREAMS 8
#define SPIN_NS 150000      /* waiting in the kernel is no more exact than this */
#define RARE_NS 20000000    /* streams with longer intervals do not spin: a hundred generators may share a core */
#define BURST 64            /* requests sent before answers are read again */

enum mode { OFF, CLOSED, OPEN, ONCE };

struct stream;

struct connection {
  struct stream *stream;
  int fd, next;                  /* frame to send next */
  char *out;                     /* bytes from out_begin to out_end are still to be sent */
  size_t out_begin, out_end, out_room;
  int blocked;                   /* waits until it may write again */
  uint32_t left;                 /* bytes of the current answer still to come after its head */
  char head[HEAD + 1];
  uint32_t head_length, head_wanted;
  uint64_t *due;                 /* by opaque & (due_room - 1): when each request was due */
  uint32_t due_room, first, last; /* opaques from first to last - 1 may be without an answer */
  int waiting;
};

struct stream {
  struct connection *connections;
  int count, turn;
  const char *frames;
  size_t *offsets;               /* frame_count + 1 of them */
  int frame_count;
  enum mode mode;
  int depth;
  double interval;               /* ns */
  uint64_t scheduled;
  uint64_t histogram[BUCKETS], recorded, sent, answers, errors, lost, waiting, worst, late, finished;
};

static struct stream streams[STREAMS];
static int stream_count, epoll;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

/* -- latencies */

static void record(struct stream *s, uint64_t ns) {
  if (ns > s->worst) s->worst = ns;
  if (ns < 64) ns = 64;
  int power = 63 - __builtin_clzll(ns);
  int bucket = (power - 6) * 64 + (int)((ns >> (power - 6)) & 63);
  s->histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
  s->recorded++;
}

static double quantile_us(const struct stream *s, double q) {
  uint64_t want = (uint64_t)(q * s->recorded), seen = 0;
  for (int b = 0; b < BUCKETS; b++) {
    seen += s->histogram[b];
    if (seen > want) return (double)((uint64_t)(64 + b % 64) << (b / 64)) / 1000.0;
  }
  return 0;
}

/* -- streams and connections */

static void read_frames(struct stream *s, const char *path) {
  int fd = open(path, O_RDONLY);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) < 0) die(path);
  size_t size = status.st_size;
  s->frames = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (s->frames == MAP_FAILED) die(path);
  close(fd);
  int room = 0;
  for (size_t at = 0; at < size;) {
    if (s->frame_count + 2 > room) {
      room = 2 * room + 64;
      s->offsets = realloc(s->offsets, room * sizeof *s->offsets);
    }
    uint32_t length;
    memcpy(&length, s->frames + at, 4);
    s->offsets[s->frame_count++] = at;
    at += 4 + ntohl(length);
    s->offsets[s->frame_count] = at;
  }
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

static void open_stream(const char *host, int port, const char *words) {
  if (stream_count == STREAMS) exit((fprintf(stderr, "at most %d streams\n", STREAMS), 2));
  struct stream *s = &streams[stream_count++];
  char *path;
  s->count = strtol(words, &path, 10);
  if (s->count < 1 || *path != ':') exit((fprintf(stderr, "CONNECTIONS:FRAMES: %s\n", words), 2));
  read_frames(s, path + 1);
  s->connections = calloc(s->count, sizeof *s->connections);
  for (int i = 0; i < s->count; i++) {
    struct connection *c = &s->connections[i];
    c->stream = s;
    c->fd = open_connection(host, port);
    c->next = i % s->frame_count;
    c->due_room = 64;
    c->due = calloc(c->due_room, sizeof *c->due);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
  }
}

static void watch_writing(struct connection *c, int blocked) {
  if (blocked == c->blocked) return;
  c->blocked = blocked;
  struct epoll_event e = {.events = EPOLLIN | (blocked ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void flush_out(struct connection *c) {
  while (c->out_begin < c->out_end) {
    ssize_t n = write(c->fd, c->out + c->out_begin, c->out_end - c->out_begin);
    if (n < 0) {
      if (errno != EAGAIN) die("write");
      return watch_writing(c, 1);
    }
    c->out_begin += n;
  }
  c->out_begin = c->out_end = 0;
  watch_writing(c, 0);
}

/* Puts the connection's next frame behind what it is sending. */
static void add_request(struct connection *c, uint64_t due) {
  struct stream *s = c->stream;
  size_t length = s->offsets[c->next + 1] - s->offsets[c->next];
  if (c->out_begin) {
    memmove(c->out, c->out + c->out_begin, c->out_end - c->out_begin);
    c->out_end -= c->out_begin;
    c->out_begin = 0;
  }
  if (c->out_end + length > c->out_room) {
    c->out_room = 2 * c->out_room + length;
    c->out = realloc(c->out, c->out_room);
  }
  memcpy(c->out + c->out_end, s->frames + s->offsets[c->next], length);
  uint32_t opaque = htonl(c->last);
  memcpy(c->out + c->out_end + OPAQUE_AT, &opaque, 4);
  c->out_end += length;
  c->next = (c->next + s->count) % s->frame_count;
  if (c->last - c->first == c->due_room) {
    uint64_t *more = calloc(2 * c->due_room, sizeof *more);
    for (uint32_t o = c->first; o != c->last; o++)
      more[o & (2 * c->due_room - 1)] = c->due[o & (c->due_room - 1)];
    free(c->due);
    c->due = more;
    c->due_room *= 2;
  }
  c->due[c->last++ & (c->due_room - 1)] = due;
  c->waiting++;
  s->waiting++;
  s->sent++;
}

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static long json_number(const char *head, const char *name) {
  const char *found = strstr(head, name);
  if (!found) fail("an answer whose header cannot be read");
  return strtol(found + strlen(name), NULL, 10);
}

static void read_head(const struct connection *c, uint32_t *opaque, long *code) {
  if (c->head[4] == 1) {
    uint16_t short_code;
    memcpy(&short_code, c->head + CODE_AT, 2);
    memcpy(opaque, c->head + OPAQUE_AT, 4);
    *code = ntohs(short_code);
    *opaque = ntohl(*opaque);
  } else {
    *code = json_number(c->head + 8, "\"code\":");
    *opaque = json_number(c->head + 8, "\"opaque\":");
  }
}

static void take_answer(struct connection *c, uint64_t t) {
  struct stream *s = c->stream;
  uint32_t opaque;
  long code;
  read_head(c, &opaque, &code);
  uint64_t *due = &c->due[opaque & (c->due_room - 1)];
  if (opaque - c->first >= c->last - c->first || *due == ANSWERED) fail("an answer to nothing that was asked");
  if (*due != LOST) {
    s->answers++;
    s->errors += code != 0;
    record(s, t - *due);
    c->waiting--;
    s->waiting--;
    s->finished = t;
  }
  *due = ANSWERED;
  while (c->first != c->last && c->due[c->first & (c->due_room - 1)] == ANSWERED) c->first++;
}

/* How many bytes of the reply hold its code and its opaque; 8 until they are read. */
static uint32_t wanted_of(const char *head) {
  uint32_t length, header;
  memcpy(&length, head, 4);
  memcpy(&header, head + 4, 4);
  length = 4 + ntohl(length);
  header = head[4] == 1 ? OPAQUE_AT + 4 : 8 + (ntohl(header) & 0xFFFFFF);
  if (header > length) fail("an answer whose lengths make no sense");
  return header < HEAD ? header : HEAD;
}

static void take_answers(struct connection *c) {
  static char buffer[1 << 18];
  ssize_t n = read(c->fd, buffer, sizeof buffer);
  if (n < 0 && errno == EAGAIN) return;
  if (n < 0) die("read");
  if (!n) fail("the server closed a connection");
  uint64_t t = now_ns();
  for (uint32_t i = 0; i < n;) {
    if (!c->left) {
      uint32_t wanted = c->head_length < 8 ? 8 : c->head_wanted;
      uint32_t take = n - i < wanted - c->head_length ? n - i : wanted - c->head_length;
      memcpy(c->head + c->head_length, buffer + i, take);
      c->head_length += take;
      i += take;
      if (c->head_length < 8) continue;
      if (wanted == 8) c->head_wanted = wanted_of(c->head);
      if (c->head_length < c->head_wanted) continue;
      c->head[c->head_length] = 0;
      uint32_t length;
      memcpy(&length, c->head, 4);
      c->left = 4 + ntohl(length) - c->head_length;
    }
    uint32_t take = n - i < c->left ? n - i : c->left;
    i += take;
    c->left -= take;
    if (!c->left) {
      take_answer(c, t);
      c->head_length = 0;
    }
  }
}

/* -- one line of the input */

static void fill(struct connection *c, uint64_t t) {
  if (c->blocked) return;
  while (c->waiting < c->stream->depth) add_request(c, t);
  flush_out(c);
}

/* When the stream's next request is due. */
static uint64_t due_of(const struct stream *s, uint64_t begin) {
  return begin + (uint64_t)(s->scheduled * s->interval);
}

static void send_due(struct stream *s, uint64_t begin, uint64_t end, uint64_t t) {
  for (int i = 0; i < BURST; i++) {
    uint64_t due = due_of(s, begin);
    if (due > t || due >= end) return;
    s->scheduled++;
    struct connection *c = &s->connections[s->turn];
    s->turn = (s->turn + 1) % s->count;
    add_request(c, due);
    if (!c->blocked) flush_out(c);
    if (t - due > s->late) s->late = t - due;
    t = now_ns();
  }
}

static void wait_until(uint64_t next, uint64_t t, uint64_t spin_ns) {
  if (next <= t + spin_ns) return;
  uint64_t ns = next - t - spin_ns;
  struct timespec pause = {ns / 1000000000u, ns % 1000000000u};
  struct pollfd p = {.fd = epoll, .events = POLLIN};
  ppoll(&p, 1, &pause, NULL);
}

static void give_up(struct stream *s, uint64_t t) {
  for (int i = 0; i < s->count; i++) {
    struct connection *c = &s->connections[i];
    for (uint32_t o = c->first; o != c->last; o++) {
      uint64_t *due = &c->due[o & (c->due_room - 1)];
      if (*due == ANSWERED || *due == LOST) continue;
      record(s, t - *due);
      *due = LOST;
      s->lost++;
    }
    c->waiting = 0;
  }
  s->waiting = 0;
  s->finished = t;
}

static void run(double seconds) {
  uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), t = begin, waiting = 1;
  for (struct stream *s = streams; s < streams + stream_count; s++) {
    s->finished = begin;
    if (s->mode == CLOSED)
      for (int i = 0; i < s->count; i++) fill(&s->connections[i], now_ns());
    if (s->mode == ONCE) {
      for (int i = 0; i < s->frame_count; i++) add_request(&s->connections[i % s->count], begin);
      for (int i = 0; i < s->count; i++) flush_out(&s->connections[i]);
    }
  }
  while (t < end || waiting) {
    struct epoll_event ready[256];
    uint64_t next = UINT64_MAX, spin_ns = 0;
    t = now_ns();
    for (struct stream *s = streams; s < streams + stream_count; s++) {
      if (s->mode != OPEN) continue;
      send_due(s, begin, end, t);
      uint64_t due = due_of(s, begin);
      if (due < end && due < next) next = due, spin_ns = s->interval > RARE_NS ? 0 : SPIN_NS;
    }
    if (next != UINT64_MAX) wait_until(next, now_ns(), spin_ns);
    int n = epoll_wait(epoll, ready, 256, next != UINT64_MAX ? 0 : 5);
    for (int i = 0; i < n; i++) {
      struct connection *c = ready[i].data.ptr;
      if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take_answers(c);
      if (ready[i].events & EPOLLOUT) flush_out(c);
      if (c->stream->mode == CLOSED && (t = now_ns()) < end) fill(c, t);
    }
    waiting = 0;
    int only_once = 1;
    for (struct stream *s = streams; s < streams + stream_count; s++) {
      waiting += s->waiting + (s->mode == OPEN && due_of(s, begin) < end);
      if (s->mode == CLOSED || s->mode == OPEN) only_once = 0;
    }
    t = now_ns();
    if (only_once && !waiting) break;
    if (t > end + (uint64_t)(GRACE_S * 1e9)) {
      for (struct stream *s = streams; s < streams + stream_count; s++) give_up(s, t);
      break;
    }
  }
  const char *separator = "[";
  for (struct stream *s = streams; s < streams + stream_count; s++) {
    if (s->mode == OFF) continue;
    double took = s->finished > end || s->mode == ONCE ? (s->finished - begin) / 1e9 : seconds;
    printf("%s{\"sent\":%llu,\"answers\":%llu,\"errors\":%llu,\"lost\":%llu,\"seconds\":%.6f,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,\"late_us\":%.1f}",
           separator, (unsigned long long)s->sent, (unsigned long long)s->answers, (unsigned long long)s->errors,
           (unsigned long long)s->lost, took, quantile_us(s, 0.5), quantile_us(s, 0.99), quantile_us(s, 0.999),
           s->worst / 1e3, s->late / 1e3);
    separator = ",";
  }
  printf("]\n");
  fflush(stdout);
}

static int configure(char *word) {
  char *mode;
  long number = strtol(word, &mode, 10);
  if (number < 0 || number >= stream_count || *mode++ != '=') return 0;
  struct stream *s = &streams[number];
  double rate;
  s->scheduled = s->turn = 0;
  if (sscanf(mode, "closed:%d", &s->depth) == 1 && s->depth > 0) s->mode = CLOSED;
  else if (sscanf(mode, "open:%lf", &rate) == 1 && rate > 0) s->mode = OPEN, s->interval = 1e9 / rate;
  else if (!strcmp(mode, "once")) s->mode = ONCE;
  else return 0;
  return 1;
}

static void clear_counts(struct stream *s) {
  s->mode = OFF;
  memset(s->histogram, 0, sizeof s->histogram);
  s->recorded = s->sent = s->answers = s->errors = s->lost = s->worst = s->late = 0;
}

/* A clock that is behind another core's stands still until it has caught up, so many readings in a row are equal. */
static void tell_clock(void) {
  uint64_t readings = 0, equal = 0, longest = 0, begin = now_ns(), last = begin, t;
  while ((t = now_ns()) < begin + 500000000u) {
    readings++;
    equal = t == last ? equal + 1 : 0;
    if (equal > longest) longest = equal;
    last = t;
  }
  printf("{\"still_us\":%.3f}\n", longest * ((double)(last - begin) / readings) / 1e3);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "clock")) return tell_clock(), 0;
  if (argc < 4) return fprintf(stderr, "usage: load HOST PORT CONNECTIONS:FRAMES...\n"), 2;
  prctl(PR_SET_TIMERSLACK, 1);
  epoll = epoll_create1(0);
  for (int i = 3; i < argc; i++) open_stream(argv[1], atoi(argv[2]), argv[i]);
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    for (struct stream *s = streams; s < streams + stream_count; s++) clear_counts(s);
    char *word = strtok(line, " \n");
    double seconds = word ? atof(word) : 0;
    while (word && (word = strtok(NULL, " \n")))
      if (!configure(word)) return fprintf(stderr, "not STREAM=MODE: %s\n", word), 2;
    run(seconds);
  }
  return 0;
}
