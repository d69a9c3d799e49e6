/* The floor: what the system calls of a broker cost with nothing around them. floor.py starts it, and has its twin in Python.

     floor wire FILE BYTES      each frame is answered with so many bytes
     floor produce FILE BYTES   each frame is written to the file in pieces of so many bytes, and answered with 60
     floor consume FILE BYTES   each frame is answered with so many bytes of the file, by sendfile

   A frame is four bytes of size, big-endian, and that many bytes. One connection; its port is printed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 4 << 20, ACKNOWLEDGEMENT = 60 };
static char buffer[ROOM], answer[ROOM];

static void send_all(int peer, const char *from, size_t size, int more) {
    while (size) {
        ssize_t sent = send(peer, from, size, more ? MSG_MORE : 0);
        if (sent <= 0) exit(0);
        from += sent, size -= sent;
    }
}

static void send_file(int peer, int file, size_t size) {
    off_t position = 0;
    while (size) {
        ssize_t sent = sendfile(peer, file, &position, size);
        if (sent <= 0) exit(0);
        size -= sent;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    char mode = argv[1][0];
    size_t bytes = atol(argv[3]), filled = 0, position = 0;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600), one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (file < 0 || bytes > ROOM || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int peer = accept(listener, NULL, NULL), waits = epoll_create1(0);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(waits, EPOLL_CTL_ADD, peer, &event);
    for (;;) {
        epoll_wait(waits, &event, 1, -1);
        ssize_t received = recv(peer, buffer + filled, ROOM - filled, 0);
        if (received <= 0) return 0;
        filled += received;
        size_t start = 0, owed = 0;
        while (filled - start >= 4) {
            uint32_t size;
            memcpy(&size, buffer + start, 4);
            size = ntohl(size);
            if (size > ROOM - 4) return 1;
            if (filled - start - 4 < size) break;
            if (mode == 'p') {
                for (size_t done = 0; done < size; done += bytes) {
                    size_t piece = size - done < bytes ? size - done : bytes;
                    position += pwrite(file, buffer + start + 4 + done, piece, position);
                }
                owed += ACKNOWLEDGEMENT;
            } else if (mode == 'c') {
                send_all(peer, answer, ACKNOWLEDGEMENT, 1);
                send_file(peer, file, bytes);
            } else {
                owed += bytes;
            }
            start += 4 + size;
        }
        if (owed) send_all(peer, answer, owed < ROOM ? owed : ROOM, 0);
        memmove(buffer, buffer + start, filled - start);
        filled -= start;
    }
}
