"""A wire that takes time: ``python delay.py A B SECONDS`` passes frames between two links, that much later.

It does what ``tc netem delay`` does, on kernels without it. It prints "ready" when it passes frames.
"""

import collections
import select
import socket
import sys
import time

ALL_FRAMES = 3  # ETH_P_ALL
SOL_PACKET, WITH_OFFLOADS = 263, 15  # PACKET_VNET_HDR: checksums and segments that are left to the hardware
OUTGOING = 4  # PACKET_OUTGOING


def opened(link):
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    packets.setsockopt(SOL_PACKET, WITH_OFFLOADS, 1)
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    packets.bind((link, ALL_FRAMES))
    packets.setblocking(False)
    return packets


def take(source, queue, due):
    """Put all frames that have come into the queue."""
    while True:
        try:
            frame, address = source.recvfrom(1 << 17)
        except BlockingIOError:
            return
        if address[2] != OUTGOING:
            queue.append((due, frame))


def main(a, b, seconds):
    ends = opened(a), opened(b)
    queues = collections.deque(), collections.deque()
    print("ready", flush=True)
    while True:
        first = min((queue[0][0] for queue in queues if queue), default=time.monotonic() + 1.0)
        select.select(ends, [], [], max(0.0, first - time.monotonic()))
        now = time.monotonic()
        for source, target, queue in zip(ends, reversed(ends), queues, strict=True):
            take(source, queue, now + seconds)
            while queue and queue[0][0] <= now:
                target.send(queue.popleft()[1])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
