/* Wrong logins from one address, as many a second as asked for or as the machine can; run by test_login_flood.py.
 *
 *   login_flood PORT ADDRESS LOGINS_PER_SECOND LOGIN_IN_HEX
 *
 * Each login is a connection of its own, opened without waiting for the others; where the broker lets too many wait,
 * the oldest is given up for the next. At each line of its input it prints the connections attempted so far, the logins
 * sent, and the connections that the broker has ended. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Attempts are given up before the kernel repeats them: that would cost more than further ones. */
enum { OPEN_MAX = 2000, EVENTS_MAX = 256 };

static unsigned char login[4096];
static size_t login_size;
static long opened, sent, ended, waiting;

/* Descriptors in the order of their attempts, each with the number of the attempt that it is for. */
static struct {
    int fd;
    long number;
} attempts_made[2 * OPEN_MAX];
static long number_of[OPEN_MAX + 1024], oldest;
static unsigned char is_sent[OPEN_MAX + 1024];

static void over(int fd) {
    is_sent[fd] = 0;
    number_of[fd] = 0;
    waiting--;
    close(fd);
}

static void give_up_oldest(void) {
    while (oldest < opened) {
        int fd = attempts_made[oldest % (2 * OPEN_MAX)].fd;
        long number = attempts_made[oldest++ % (2 * OPEN_MAX)].number;
        if (number_of[fd] == number) {
            over(fd);
            return;
        }
    }
}

static double now_s(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static void open_one(int events, const struct sockaddr_in *from, const struct sockaddr_in *to) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0) return;
    struct linger at_once = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
    if (bind(fd, (const struct sockaddr *)from, sizeof *from) < 0 ||
        (connect(fd, (const struct sockaddr *)to, sizeof *to) < 0 && errno != EINPROGRESS) ||
        epoll_ctl(events, EPOLL_CTL_ADD, fd, &wanted) < 0) {
        close(fd);
        return;
    }
    long place = opened++ % (2 * OPEN_MAX);
    attempts_made[place].fd = fd;
    attempts_made[place].number = number_of[fd] = opened;
    waiting++;
}

static void advance(int fd, unsigned ready) {
    char answer[4096];
    if (ready & (EPOLLERR | EPOLLHUP)) goto end;
    if (ready & EPOLLOUT && !is_sent[fd]) {
        if (send(fd, login, login_size, MSG_NOSIGNAL) != (ssize_t)login_size) goto end;
        is_sent[fd] = 1;
        sent++;
    }
    if (ready & (EPOLLIN | EPOLLRDHUP)) {
        ssize_t size;
        while ((size = recv(fd, answer, sizeof answer, 0)) > 0) {}
        if (size == 0 || errno != EAGAIN) goto end;
    }
    return;
end:
    ended++;
    over(fd);
}

int main(int count, char **words) {
    if (count != 5) return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))}, from = {.sin_family = AF_INET};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    inet_pton(AF_INET, words[2], &from.sin_addr);
    double rate = atof(words[3]);
    for (const char *hex = words[4]; hex[0] && hex[1] && login_size < sizeof login; hex += 2)
        sscanf(hex, "%2hhx", &login[login_size++]);
    struct rlimit files = {OPEN_MAX + 1000, OPEN_MAX + 1000};
    if (setrlimit(RLIMIT_NOFILE, &files) < 0) {
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int events = epoll_create1(0);
    struct epoll_event input = {.events = EPOLLIN, .data.fd = 0}, ready[EVENTS_MAX];
    epoll_ctl(events, EPOLL_CTL_ADD, 0, &input);
    double began = now_s(), attempts = 0;
    for (;;) {
        double due = (now_s() - began) * rate - attempts;
        for (int n = 0; n < 50 && due >= 1; n++, due--, attempts++) {
            if (waiting >= OPEN_MAX) give_up_oldest();
            open_one(events, &from, &to);
        }
        int found = epoll_wait(events, ready, EVENTS_MAX, 1);
        for (int n = 0; n < found; n++) {
            if (ready[n].data.fd) {
                if (number_of[ready[n].data.fd]) advance(ready[n].data.fd, ready[n].events);
                continue;
            }
            char line[64];
            if (read(0, line, sizeof line) <= 0) return 0;
            printf("%ld %ld %ld\n", opened, sent, ended);
            fflush(stdout);
        }
    }
}
