// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * datagrams: sends UDP packets to many ports from one socket that is not connected.
 *
 *   datagrams PORT ADDRESS FIRST COUNT
 *
 * The socket has the local port PORT. For each line on stdin it sends one packet to each of the ports FIRST to
 * FIRST + COUNT - 1 of ADDRESS and prints `sent`. It ends with its input. The kernel chooses the transmit queue for each
 * packet anew, because such a socket holds no route (`netdev_pick_tx` in net/core/dev.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET };
	char line[64];
	int s, i, first, count;

	if (argc != 5 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: datagrams PORT ADDRESS FIRST COUNT\n");
		return 2;
	}
	first = atoi(argv[3]);
	count = atoi(argv[4]);
	from.sin_port = htons(atoi(argv[1]));
	s = socket(AF_INET, SOCK_DGRAM, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&from, sizeof(from)) < 0) {
		perror("bind");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		for (i = 0; i < count; i++) {
			to.sin_port = htons(first + i);
			while (sendto(s, "datagram", 8, 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
				if (errno != ENOBUFS && errno != EAGAIN) {
					perror("sendto");
					return 1;
				}
				usleep(1000);
			}
		}
		printf("sent\n");
		fflush(stdout);
	}
	return 0;
}
