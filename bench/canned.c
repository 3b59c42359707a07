/* A bare epoll server: whatever is asked, it answers the bytes of a file, with the opaque of the request.
 *
 *   canned PORT ANSWER     prints "canned" when it listens; ANSWER is a file with one whole answer
 *
 * It does what no server can do without: it finds the ends of frames, and answers all requests of one read in one
 * write. What another server's answer costs above this is its own. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPAQUE_AT 13
#define READ_BYTES 65536
#define SHORTEST_REQUEST 29 /* a frame with an empty binary header */

struct connection {
  int fd;
  size_t kept;                   /* bytes of a frame that is not complete yet */
  unsigned char in[2 * READ_BYTES];
};

static char *answer, *out;
static size_t answer_length;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void read_answer(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die(path);
  fseek(file, 0, SEEK_END);
  answer_length = ftell(file);
  rewind(file);
  answer = malloc(answer_length);
  out = malloc((2 * READ_BYTES / SHORTEST_REQUEST + 1) * answer_length);
  if (!answer || !out || fread(answer, 1, answer_length, file) != answer_length) die(path);
  fclose(file);
}

/* Blocks when the peer does not read: the bench's load always does. */
static int send_all(int fd, const char *bytes, size_t length) {
  while (length) {
    ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
    if (n < 0) return 0;
    bytes += n;
    length -= n;
  }
  return 1;
}

static int serve(struct connection *c) {
  ssize_t n = recv(c->fd, c->in + c->kept, READ_BYTES, MSG_DONTWAIT);
  if (n <= 0) return n < 0 && errno == EAGAIN;
  size_t have = c->kept + n, at = 0, out_length = 0;
  while (have - at >= 4) {
    uint32_t length;
    memcpy(&length, c->in + at, 4);
    length = 4 + ntohl(length);
    if (length < SHORTEST_REQUEST || length > READ_BYTES) return 0;
    if (have - at < length) break;
    memcpy(out + out_length, answer, answer_length);
    memcpy(out + out_length + OPAQUE_AT, c->in + at + OPAQUE_AT, 4);
    out_length += answer_length;
    at += length;
  }
  c->kept = have - at;
  memmove(c->in, c->in + at, c->kept);
  return send_all(c->fd, out, out_length);
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: canned PORT ANSWER\n"), 2;
  read_answer(argv[2]);
  int one = 1, epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
  inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 1024) < 0) die("listen");
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}, ready[256];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
  printf("canned\n");
  fflush(stdout);
  for (;;) {
    int n = epoll_wait(epoll, ready, 256, -1);
    for (int i = 0; i < n; i++) {
      struct connection *c = ready[i].data.ptr;
      if (!c) {
        c = malloc(sizeof *c);
        c->kept = 0;
        c->fd = accept(listener, NULL, NULL);
        if (c->fd < 0) die("accept");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        e.data.ptr = c;
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
      } else if (!serve(c)) {
        close(c->fd);
        free(c);
      }
    }
  }
}
