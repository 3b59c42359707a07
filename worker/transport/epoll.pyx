# cython: language_level=3
"""A worker's connections on an epoll of their own: one turn reads, answers and writes all that are ready.

The compiled twin of uvloop's transports (`worker.transport.transports`). Cached requests (`worker.cache.cached_requests`) are answered
from the buffer that they were read into, without a Python object of their own; everything else is handed to the
connection's `data_received`, as any transport does."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, PyObject, Py_XDECREF
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from collections import deque
from os import strerror

from access.classes import AccessClass
from rocketmq_remoting.frame import FRAME_MAX_LENGTH, HEADER_MAX_LENGTH
from worker.cache.cached_registrations import FRAME_LONGEST
from worker.cache.cached_requests import CHECKS_MOST, FRAME_MOST, RepeatCheck
from worker.cache.request_shapes import VIEW_PROVEN
from worker.counters import SAMPLED

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t length) except NULL
    int resize_bytes "_PyBytes_Resize"(PyObject** data, Py_ssize_t length) except -1
    char* bytes_at "PyBytes_AS_STRING"(PyObject* data)
    Py_ssize_t bytes_length "PyBytes_GET_SIZE"(PyObject* data)
    PyObject* PyDict_GetItemWithError(object entries, object key) except? NULL

cdef extern from "<string.h>" nogil:
    int memcmp(const void* one, const void* other, size_t length)
    void* memchr(const void* haystack, int byte, size_t length)
    void* memrchr(const void* bytes, int byte, size_t length)
    void* memmem(const void* haystack, size_t length, const void* needle, size_t needle_length)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_BOOTTIME  # runs on while the machine is suspended
    int clock_gettime(int clock, timespec* now)

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len

cdef extern from "<sys/socket.h>" nogil:
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    int MSG_DONTWAIT
    int MSG_NOSIGNAL
    Py_ssize_t recv(int fd, void* buffer, size_t length, int flags)
    Py_ssize_t send(int fd, const void* buffer, size_t length, int flags)
    Py_ssize_t sendmsg(int fd, const msghdr* message, int flags)

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void* ptr
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int EPOLL_CTL_ADD
    int EPOLL_CTL_MOD
    int EPOLL_CTL_DEL
    int EPOLL_CLOEXEC
    uint32_t EPOLLIN
    uint32_t EPOLLOUT
    uint32_t EPOLLERR
    uint32_t EPOLLHUP
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int what, int fd, epoll_event* event)
    int epoll_wait(int epoll, epoll_event* events, int most, int timeout)

cdef enum:
    READ_BYTES = 65536  # no more, so that it stays in the processor's cache
    GATHERED_AT_ONCE = 524288  # of a frame that is longer than that
    GATHERED_ROOM = 2097152  # for it, once so much has come as follows: a block that grows later is copied
    GATHERED_FIRST = 262144  # room for less takes no huge page
    OUT_BYTES = 524288  # of answers of one read, bodies that are copied included
    OUT_MARGIN = 65536  # beyond the bound of the answers of one read: its last answer
    COPIED_MOST = 4096  # bytes of a body that are copied rather than pointed to
    PIECES = 512
    READY_AT_ONCE = 16
    SHORTEST = 25

cdef double SLICE_S = 0.001
"""Time for the sockets that are ready, before the rest of the loop runs."""
cdef double LONGEST_S = 0.5
"""From the look at what may be answered to an answer; this is longer only if the process stood still meanwhile."""
cdef Py_ssize_t FRAME_BYTES = FRAME_MOST
cdef Py_ssize_t COMPARED_BYTES = FRAME_LONGEST
cdef Py_ssize_t LONGEST = FRAME_MAX_LENGTH - 4
cdef Py_ssize_t HEADER_LONGEST = HEADER_MAX_LENGTH
cdef Py_ssize_t CHECKS_COUNT = CHECKS_MOST
cdef unsigned int TIMED_OF = SAMPLED
cdef unsigned char PROVEN_FROM = VIEW_PROVEN
cdef long CACHED_CLASSES = AccessClass.READ | AccessClass.BROKER
"""Those of requests that can be answered by their bytes."""
cdef const char* FIELD = b"\0\x05topic"  # the name of a binary header's ext field, after its length


cdef class Answers:
    """Bytes to be written: copied into one buffer or pointed to, in order."""

    cdef char* buffer
    cdef size_t used, begun
    cdef iovec pieces[PIECES]
    cdef int count
    cdef Py_ssize_t lookups  # that are answered here
    cdef list referenced  # what is pointed to

    def __cinit__(self):
        self.buffer = <char*>PyMem_Malloc(OUT_BYTES)
        if not self.buffer:
            raise MemoryError
        self.clear()

    def __dealloc__(self):
        PyMem_Free(self.buffer)

    cdef void clear(self):
        self.used = self.begun = self.count = self.lookups = 0
        self.referenced = []

    cdef inline bint has_room(self, size_t length):
        return self.used + length + OUT_MARGIN < OUT_BYTES and self.count + 4 < PIECES

    cdef inline void copy(self, const char* data, size_t length):
        memcpy(self.buffer + self.used, data, length)
        self.used += length

    cdef inline void add(self, bytes data):
        cdef size_t length = PyBytes_GET_SIZE(data)
        if length <= COPIED_MOST:
            self.copy(PyBytes_AS_STRING(data), length)
            return
        self.seal()
        self.referenced.append(data)
        self.piece(PyBytes_AS_STRING(data), length)

    cdef inline void seal(self):
        """What was copied since the last piece becomes one."""
        if self.used > self.begun:
            self.piece(self.buffer + self.begun, self.used - self.begun)
            self.begun = self.used

    cdef inline void piece(self, char* data, size_t length):
        self.pieces[self.count].iov_base = data
        self.pieces[self.count].iov_len = length
        self.count += 1

    cdef bytes rest(self, size_t written):
        """What is left when so much was written."""
        cdef int i
        cdef size_t length
        parts = []
        for i in range(self.count):
            length = self.pieces[i].iov_len
            if written < length:
                parts.append(PyBytes_FromStringAndSize(<char*>self.pieces[i].iov_base + written, length - written))
                written = 0
            else:
                written -= length
        return b"".join(parts)


cdef inline uint32_t word_at(const unsigned char* at):
    return (<uint32_t>at[0] << 24) | (at[1] << 16) | (at[2] << 8) | at[3]


cdef inline bytes joined(const char* a, Py_ssize_t a_length, const char* b, Py_ssize_t b_length):
    cdef bytes both = PyBytes_FromStringAndSize(NULL, a_length + b_length)
    memcpy(PyBytes_AS_STRING(both), a, a_length)
    memcpy(PyBytes_AS_STRING(both) + a_length, b, b_length)
    return both


# What follows is `worker.cache.request_shapes` on a buffer.

cdef struct Cuts:
    # Where the opaque and the topic of a frame are; no topic is cut where `topic` is NULL.
    const char *start
    const char *stop
    const char *topic
    const char *topic_end


cdef inline void cut_binary(const char* frame, const char* end, bint is_all_header, Cuts* cuts):
    """`request_shapes.cuts_of` of a binary header."""
    cdef Py_ssize_t ext = end - frame - 29
    cdef const char* field
    cuts.start, cuts.stop = frame + 13, frame + 17
    if not is_all_header or ext < 11 or word_at(<const unsigned char*>frame + 21):
        return
    if word_at(<const unsigned char*>frame + 25) != <uint32_t>ext:
        return
    field = frame + 29
    if memcmp(field, FIELD, 7):
        field = <const char*>memmem(field, ext - 4, FIELD, 7)
        if field == NULL:
            return
    ext = word_at(<const unsigned char*>field + 7)
    field += 11
    if ext <= end - field:
        cuts.topic, cuts.topic_end = field, field + ext


cdef inline bint cut_json(const char* frame, const char* end, bint is_all_header, Cuts* cuts):
    """`request_shapes.cuts_of` of a JSON header; whether the opaque can be cut out."""
    cdef const char* start = <const char*>memmem(frame + 8, end - frame - 8, b'"opaque":', 9)
    cdef const char* stop
    cdef const char* topic
    if start == NULL or <unsigned char>frame[8] >= 0xFC:
        return False
    start += 9
    stop = start
    while stop < end and stop < start + 9 and c'0' <= stop[0] <= c'9':
        stop += 1
    if stop == start or stop == end or stop[0] != c',' or (stop - start > 1 and start[0] == c'0'):
        return False
    cuts.start, cuts.stop = start, stop
    if is_all_header:
        topic = <const char*>memmem(frame + 8, end - frame - 8, b'"topic":"', 9)
        if topic == NULL:
            return True
        topic += 9
        stop = <const char*>memchr(topic, c'"', end - topic)
        if stop != NULL and (cuts.stop <= topic or stop <= start):
            cuts.topic, cuts.topic_end = topic, stop
    return True


cdef inline char* put(char* to, const char* begin, const char* end):
    memcpy(to, begin, end - begin)
    return to + (end - begin)


cdef inline char* put_places(char* to, int kind, Py_ssize_t first, Py_ssize_t second):
    to[0], to[1], to[2], to[3], to[4] = <char>kind, <char>(first >> 8), <char>first, <char>(second >> 8), <char>second
    return to + 5


cdef inline bytes shape_with_topic(const char* frame, const char* end, bint binary, const Cuts* cuts):
    """`request_shapes.shape_of` of a frame with a topic, which has at most FRAME_MOST bytes."""
    cdef char shape[1024]
    cdef char* to = shape
    if binary:
        to = put_places(to, 0xFC, cuts.topic - frame, 0)
        to = put(to, frame + 8, cuts.start)
        to = put(to, cuts.stop, frame + 21)
        to = put(to, frame + 29, cuts.topic - 4)
        to = put(to, cuts.topic_end, end)
    elif cuts.start < cuts.topic:
        to = put_places(to, 0xFD, cuts.start - frame, cuts.topic - cuts.stop)
        to = put(to, frame + 8, cuts.start)
        to = put(to, cuts.stop, cuts.topic)
        to = put(to, cuts.topic_end, end)
    else:
        to = put_places(to, 0xFE, cuts.topic - frame, cuts.start - cuts.topic_end)
        to = put(to, frame + 8, cuts.topic)
        to = put(to, cuts.topic_end, cuts.start)
        to = put(to, cuts.stop, end)
    return PyBytes_FromStringAndSize(shape, to - shape)


cdef inline bint same(const char* a, const char* a_end, const char* b, const char* b_end):
    return a_end - a == b_end - b and not memcmp(a, b, a_end - a)


cdef inline bint same_shape(
    const char* frame, const char* end, const Cuts* cuts, const char* last, const char* last_end, const Cuts* before
):
    """Whether a frame with a topic has the shape of the frame before it, whose header is of the same kind."""
    if (cuts.start < cuts.topic) != (before.start < before.topic):
        return False
    if frame[4]:
        return (
            word_at(<const unsigned char*>frame + 8) == word_at(<const unsigned char*>last + 8)
            and frame[12] == last[12]
            and word_at(<const unsigned char*>frame + 17) == word_at(<const unsigned char*>last + 17)
            and same(frame + 29, cuts.topic - 4, last + 29, before.topic - 4)
            and same(cuts.topic_end, end, before.topic_end, last_end)
        )
    if cuts.start < cuts.topic:
        return (
            same(frame + 8, cuts.start, last + 8, before.start)
            and same(cuts.stop, cuts.topic, before.stop, before.topic)
            and same(cuts.topic_end, end, before.topic_end, last_end)
        )
    return (
        same(frame + 8, cuts.topic, last + 8, before.topic)
        and same(cuts.topic_end, cuts.start, before.topic_end, before.start)
        and same(cuts.stop, end, before.stop, last_end)
    )


cdef inline bytes request_of(bytes held, const Cuts* cuts):
    """`RequestShapes.request` of a frame with a topic, whose shape is known; None where there is none."""
    cdef const char* begin = PyBytes_AS_STRING(held)
    cdef const char* end = begin + PyBytes_GET_SIZE(held)
    cdef const char* topic
    if <unsigned char>begin[2] < PROVEN_FROM:
        return joined(begin, end - begin, cuts.topic, cuts.topic_end - cuts.topic)
    topic = <const char*>memrchr(begin, 0xFF, end - begin) + 1
    return held if same(topic, end, cuts.topic, cuts.topic_end) else None


cdef inline bytes head_of(object cached, Py_ssize_t digits):
    cdef dict heads = cached.heads
    head = heads.get(digits)
    return <bytes>(cached.head(digits) if head is None else head)


cdef Py_ssize_t scan(
    object requests, const char* data, Py_ssize_t size, double now, size_t most, long rights, Answers out, list checks
) except -1:
    """`CachedRequests.answers` on a buffer: how long the cached requests at its start are."""
    cdef bint limited = rights & CACHED_CLASSES != CACHED_CLASSES
    cdef object entries = requests.replies.entries, shapes = requests.shapes.entries, use = None, cached
    cdef bytes request, shape = None, held = None, rest, body
    cdef tuple parts
    cdef list uses
    cdef PyObject* entry
    cdef Py_ssize_t at = 0, length, digits, lookups = 0
    cdef const char *frame
    cdef const char *end
    cdef const char *last = NULL
    cdef const char *last_end = NULL
    cdef bint binary, is_all_header
    cdef Cuts cuts, last_cuts
    cdef uint32_t word
    cdef size_t sent = 0
    memset(&last_cuts, 0, sizeof(Cuts))
    if requests.replies.crowded or requests.shapes.crowded or requests.routes.present.crowded:
        use = requests.record_use
    while size - at >= SHORTEST and sent < most and len(checks) < CHECKS_COUNT:
        frame = data + at
        length = <int>word_at(<const unsigned char*>frame)
        if length < SHORTEST - 4 or length > FRAME_BYTES or at + 4 + length > size:
            break
        end = frame + 4 + length
        word = word_at(<const unsigned char*>frame + 4)
        binary = word >> 24 != 0
        is_all_header = <Py_ssize_t>(word & 0xFEFFFFFF) == length - 4  # of type 0 or 1
        cuts.topic = cuts.topic_end = NULL
        if binary:
            cut_binary(frame, end, is_all_header, &cuts)
        elif not cut_json(frame, end, is_all_header, &cuts):
            break
        digits = 0 if binary else cuts.stop - cuts.start
        if cuts.topic:
            if last == NULL or frame[4] != last[4] or not same_shape(frame, end, &cuts, last, last_end, &last_cuts):
                shape = shape_with_topic(frame, end, binary, &cuts)
                entry = PyDict_GetItemWithError(shapes, shape)
                if entry == NULL:
                    break
                held = <bytes>entry
            last, last_end, last_cuts = frame, end, cuts
            request = request_of(held, &cuts)
            entry = PyDict_GetItemWithError(entries, request)
            if entry == NULL:
                break
            cached = <object>entry
        else:
            last = NULL
            if binary:
                shape = joined(frame, 13, cuts.stop, end - cuts.stop)
            else:
                shape = joined(frame + 8, cuts.start - frame - 8, cuts.stop, end - cuts.stop)
            entry = PyDict_GetItemWithError(entries, shape)
            if entry != NULL:
                cached = <object>entry
                if not binary and cached.tail != frame + 8 + <Py_ssize_t>word - cuts.stop:
                    break
            else:
                entry = PyDict_GetItemWithError(shapes, shape) if is_all_header else NULL
                if entry == NULL:
                    break
                entry = PyDict_GetItemWithError(entries, <object>entry)
                if entry == NULL:
                    break
                cached = <object>entry
        if limited and <long>cached.needs & ~rights:
            break
        parts = <tuple>cached.parts
        rest = <bytes>parts[1]
        if not out.has_room(PyBytes_GET_SIZE(rest)):
            break
        if use is not None:
            use(cached, shape)
        if (cached.generation == cached.source.generation and now < <double>cached.until) or requests.is_true(cached):
            out.add(<bytes>parts[0] if binary else head_of(cached, digits))
            out.copy(cuts.start, cuts.stop - cuts.start)
            body = <bytes>parts[2]
            out.add(rest)
            out.add(body)
            sent += PyBytes_GET_SIZE(body)
            if cuts.topic:
                lookups += 1
            else:
                uses = <list>cached.uses
                uses[0] += 1
        elif cached.renewal is not None:
            checks.append(
                RepeatCheck(
                    cached,
                    PyBytes_FromStringAndSize(cuts.start, cuts.stop - cuts.start),
                    PyBytes_FromStringAndSize(frame, end - frame),
                )
            )
        else:
            break
        at += 4 + length
    out.seal()
    out.lookups = lookups
    return at


def answers(requests, bytes data, double now, size_t most, Py_ssize_t first=0, long rights=CACHED_CLASSES):
    """As `CachedRequests.answers`, but that a longer frame is left to the connection."""
    cdef Answers out = Answers()
    cdef list checks = []
    if not 0 <= first <= PyBytes_GET_SIZE(data):
        raise ValueError("first")
    length = scan(
        requests, PyBytes_AS_STRING(data) + first, PyBytes_GET_SIZE(data) - first, now, most, rights, out, checks
    )
    if out.lookups:
        requests.counters.lookups[0] += out.lookups
    return [out.rest(0)], length, checks


cdef double clock():
    cdef timespec now
    clock_gettime(CLOCK_BOOTTIME, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef class Poller:
    """The sockets of one worker.

    `cached` gives the cached requests (`CachedRequests`), or None while nothing may be answered from it. `read` and
    `written` count the bytes of requests that were answered here, and of their answers; `lookups` those with a topic."""

    cdef readonly unsigned long long read, written, lookups
    cdef unsigned int _answered  # reads of which something was
    cdef int _epoll
    cdef char* _buffer
    cdef Answers _answers
    cdef object _loop, _cached
    cdef set _open
    cdef epoll_event _found[READY_AT_ONCE]  # what the last look found, up to `_count`
    cdef int _next, _count
    cdef double _began  # the turn

    def __cinit__(self, loop, cached):
        self._epoll = -1
        self._buffer = <char*>PyMem_Malloc(READ_BYTES)
        if not self._buffer:
            raise MemoryError
        self._answers = Answers()
        self._loop, self._cached = loop, cached
        self._open = set()
        self._epoll = epoll_create1(EPOLL_CLOEXEC)
        if self._epoll < 0:
            raise OSError(errno, strerror(errno))
        loop.add_reader(self._epoll, self._turn)

    def __dealloc__(self):
        PyMem_Free(self._buffer)
        if self._epoll >= 0:
            close(self._epoll)

    def open(self, socket, protocol):
        """Take over a connected, non-blocking socket; OSError if the system cannot watch it."""
        cdef Transport transport = Transport(self, protocol)
        transport._register(socket.fileno())
        socket.detach()
        self._open.add(transport)
        protocol.connection_made(transport)

    def stop(self):
        """Look at no socket any more."""
        self._loop.remove_reader(self._epoll)

    def _turn(self):
        """Serve those that are ready, in the order in which they became so, for a bounded time."""
        cdef double until
        cdef epoll_event* found
        self._began = clock()
        until = self._began + SLICE_S
        cached, now = self._cached(), self._loop.time()
        while True:
            while self._next < self._count:
                found = &self._found[self._next]
                self._next += 1
                if found.data.ptr:
                    (<Transport>found.data.ptr)._ready(found.events, cached, now)
                    if clock() > until:
                        return  # what was found and not served is still ready, so this is called again
            if self._count and self._count < READY_AT_ONCE:
                self._count = 0
                return
            self._next, self._count = 0, epoll_wait(self._epoll, self._found, READY_AT_ONCE, 0)
            if self._count <= 0:
                self._count = 0
                return

    cdef _forget(self, Transport transport):
        cdef int i
        for i in range(self._next, self._count):
            if self._found[i].data.ptr == <void*>transport:
                self._found[i].data.ptr = NULL
        self._open.discard(transport)


cdef class Transport:
    """One socket, as asyncio's transports are; it lives until `connection_lost` was called."""

    cdef Poller _poller
    cdef object _protocol, _unwritten
    cdef int _fd
    cdef uint32_t _wanted
    cdef bint _closing, _lost, _choking
    cdef Py_ssize_t _unwritten_bytes, _high
    cdef Py_ssize_t _at  # how much of the first of them is written
    cdef PyObject* _gathered  # bytes of one frame that is too long for one read
    cdef Py_ssize_t _have, _whole  # how much of the frame is there, and its length
    cdef Py_ssize_t _passed  # bytes of its head, if that was passed on alone

    def __cinit__(self, Poller poller, protocol):
        self._poller, self._protocol = poller, protocol
        self._fd = -1
        self._high = 65536

    def __dealloc__(self):
        Py_XDECREF(self._gathered)

    # -- the connection calls

    def set_write_buffer_limits(self, Py_ssize_t high):
        """Bytes not taken by the system beyond which `pause_writing` is called."""
        self._high = high

    def get_write_buffer_size(self):
        return self._unwritten_bytes

    def get_extra_info(self, name, default=None):
        """As asyncio's transports, for "socket": of that only `fileno` is known, which is all that ioctl asks for."""
        return self if name == "socket" else default

    def fileno(self):
        return self._fd

    def pause_reading(self):
        if self._wanted & EPOLLIN:
            self._want(self._wanted & ~EPOLLIN)

    def resume_reading(self):
        if not self._closing:
            self._want(self._wanted | EPOLLIN)

    def write(self, bytes data):
        cdef Py_ssize_t written
        if self._closing or not data:
            return
        if not self._unwritten_bytes:
            written = send(self._fd, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), MSG_DONTWAIT | MSG_NOSIGNAL)
            if written == PyBytes_GET_SIZE(data):
                return
            if written < 0:
                if not would_block():
                    self._end(failure())
                    return
            else:
                data = data[written:]
        self._keep(data)

    def close(self):
        """End once everything is written."""
        if self._closing:
            return
        self._closing = True
        if self._unwritten_bytes:
            self._want(EPOLLOUT)
        else:
            self._end(None)

    def abort(self):
        """End at once."""
        self._end(None)

    # -- the poller calls

    cdef _register(self, int fd):
        self._fd = fd
        self._want(EPOLLIN)

    cdef _ready(self, uint32_t events, cached, now):
        try:
            if self._unwritten_bytes and events & (EPOLLOUT | EPOLLERR | EPOLLHUP):
                self._flush()
            if self._wanted & EPOLLIN and events & (EPOLLIN | EPOLLERR | EPOLLHUP):
                if self._gathered:
                    self._gather(now)
                else:
                    self._receive(cached, now)
        except Exception as error:
            self._poller._loop.call_exception_handler({"message": "in a connection", "exception": error})
            self._end(error)

    # -- inside

    cdef _want(self, uint32_t events):
        """Have the poller look for these events only; for none at all, it looks away."""
        cdef epoll_event event
        cdef int what
        if events == self._wanted or self._lost:
            return
        event.events = events
        event.data.ptr = <void*>self
        what = EPOLL_CTL_MOD if events and self._wanted else EPOLL_CTL_ADD if events else EPOLL_CTL_DEL
        if epoll_ctl(self._poller._epoll, what, self._fd, &event) < 0:
            raise failure()
        self._wanted = events

    cdef _receive(self, cached, now):
        cdef char* buffer = self._poller._buffer
        cdef Py_ssize_t size = self._read(buffer, READ_BYTES), at = 0
        if size <= 0:
            return
        if self._protocol.direct:
            self._protocol.active_at = now
            if cached is not None and not self._unwritten_bytes and clock() < self._poller._began + LONGEST_S:
                at = self._answer(cached, buffer, size, now)
                self._poller.read += at
                if at == size or self._closing:
                    return
            if self._is_long(<const unsigned char*>buffer + at, size - at):
                self._begin_gathering(buffer + at, size - at)
                return
        self._protocol.data_received(PyBytes_FromStringAndSize(buffer + at, size - at))

    cdef Py_ssize_t _read(self, char* buffer, Py_ssize_t most) except -2:
        """How many bytes have come; none if there are none now, or no more."""
        cdef Py_ssize_t size = recv(self._fd, buffer, most, MSG_DONTWAIT)
        if size < 0:
            if not would_block():
                self._end(failure())
        elif size == 0:
            self._want(self._wanted & ~EPOLLIN)
            if not self._protocol.eof_received():
                self.close()
        return size

    cdef bint _is_long(self, const unsigned char* data, Py_ssize_t size):
        """Whether a sound frame begins here that no read takes whole; the connection judges all others."""
        cdef uint32_t length, word
        if size < 8:
            return False
        length, word = word_at(data), word_at(data + 4)
        if 4 + <Py_ssize_t>length <= READ_BYTES or length > LONGEST or word > 0x1FFFFFF:
            return False
        word &= 0xFFFFFF
        self._whole = 4 + length
        return 0 < word <= length - 4 and word <= HEADER_LONGEST

    cdef _begin_gathering(self, const char* data, Py_ssize_t size):
        """Keep the beginning of a frame. The head of one that is never compared goes ahead: so its body is not copied.

        There is room for four times as much at once, which spares a shorter frame another copy."""
        cdef Py_ssize_t head = 8 + (word_at(<const unsigned char*>data + 4) & 0xFFFFFF)
        self._passed = head if self._whole > COMPARED_BYTES and head <= size else 0
        self._gathered = new_bytes(NULL, min(self._whole - self._passed, 4 * (size - self._passed)))
        memcpy(bytes_at(self._gathered), data + self._passed, size - self._passed)
        self._have = size
        if self._passed:
            self._protocol.data_received(PyBytes_FromStringAndSize(data, head))
        self._protocol.incomplete(self._whole, size)

    cdef _gather(self, now):
        """Read on where the frame is to be whole; memory grows as the bytes come."""
        cdef Py_ssize_t room = bytes_length(self._gathered), at = self._have - self._passed, size
        if at == room:  # the system gives it as it is written
            room = max(4 * room, <Py_ssize_t>(GATHERED_FIRST if room < GATHERED_FIRST else GATHERED_ROOM))
            room = min(self._whole - self._passed, room)
            resize_bytes(&self._gathered, room)
        size = self._read(bytes_at(self._gathered) + at, min(room - at, GATHERED_AT_ONCE))
        if size <= 0:
            return
        self._protocol.active_at = now
        self._have += size
        if self._have == self._whole:
            frame = <object>self._gathered
            Py_DECREF(frame)
            self._gathered = NULL
            self._protocol.data_received(frame)  # it counts until it is handed over
        else:
            self._protocol.incomplete(self._whole, self._have)

    cdef Py_ssize_t _answer(self, cached, const char* data, Py_ssize_t size, double now) except -1:
        cdef Answers out = self._poller._answers
        cdef list checks = []
        cdef Py_ssize_t at
        cdef bint timed = self._poller._answered % TIMED_OF == 0
        cdef double began = clock() if timed else 0
        try:
            at = scan(cached, data, size, now, self._high, <long>self._protocol.rights, out, checks)
            if out.count:
                self._write_out(out)
                self._poller._answered += 1
                self._poller.lookups += out.lookups
                if timed and out.lookups:
                    cached.counters.lookups_took(clock() - began, TIMED_OF * out.lookups)
        finally:  # they are all connections', one after the other
            out.clear()
        if checks:
            self._protocol.check_repeats(checks)
        return at

    cdef _write_out(self, Answers out):
        cdef msghdr message
        cdef Py_ssize_t written, size = 0
        cdef int i
        if out.count == 1:
            size = out.pieces[0].iov_len
            written = send(self._fd, out.pieces[0].iov_base, size, MSG_DONTWAIT | MSG_NOSIGNAL)
        else:
            memset(&message, 0, sizeof(message))
            message.msg_iov, message.msg_iovlen = out.pieces, out.count
            for i in range(out.count):
                size += out.pieces[i].iov_len
            written = sendmsg(self._fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
        self._poller.written += size
        if written < 0:
            if would_block():
                self._keep(out.rest(0))
            else:
                self._end(failure())
        elif written < size:
            self._keep(out.rest(written))

    cdef _keep(self, bytes data):
        """What the system does not take now."""
        if self._unwritten is None:
            self._unwritten = deque()
        self._unwritten.append(data)
        self._unwritten_bytes += PyBytes_GET_SIZE(data)
        self._want(self._wanted | EPOLLOUT)
        if self._unwritten_bytes > self._high and not self._choking:
            self._choking = True
            self._protocol.pause_writing()

    cdef _flush(self):
        cdef Py_ssize_t written, left
        cdef bytes data
        while self._unwritten_bytes:
            data = self._unwritten[0]
            left = PyBytes_GET_SIZE(data) - self._at
            written = send(self._fd, PyBytes_AS_STRING(data) + self._at, left, MSG_DONTWAIT | MSG_NOSIGNAL)
            if written < 0:
                if not would_block():
                    self._end(failure())
                    return
                break
            self._unwritten_bytes -= written
            if written < left:
                self._at += written
                break
            self._unwritten.popleft()
            self._at = 0
        if not self._unwritten_bytes:
            self._unwritten = None
            if self._closing:
                self._end(None)
                return
            self._want(self._wanted & ~EPOLLOUT)
        if self._choking and self._unwritten_bytes <= self._high // 4:
            self._choking = False
            self._protocol.resume_writing()

    cdef _end(self, error):
        """Close the socket; `connection_lost` is called in a later iteration of the loop."""
        if self._lost:
            return
        try:
            self._want(0)
        except OSError:
            pass  # the poller forgets a closed socket anyway
        self._closing = self._lost = True
        self._unwritten, self._unwritten_bytes = None, 0
        self._poller._loop.call_soon(self._ended, error)

    def _ended(self, error):
        close(self._fd)
        self._poller._forget(self)
        protocol, self._protocol = self._protocol, None
        protocol.connection_lost(error)


cdef bint would_block():
    return errno == EAGAIN or errno == EINTR


cdef failure():
    return OSError(errno, strerror(errno))
