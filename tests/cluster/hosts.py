"""Several hosts on one machine: network namespaces, each with a host name and a link to one bridge.

Ranks on different hosts can talk through their links only. A link can be cut or slowed down, and it counts
bytes. Needs root.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

BRIDGE, NET = "mmtest", "10.77.0"
MOST = 3  # hosts
TOOLS = ("ip", "unshare")
# Takes the place of ssh: options first, then the host's address, then the command.
AGENT = f"""#!/usr/bin/env bash
while [[ "$1" == -* ]]; do shift; done
name={BRIDGE}${{1##*.}}; shift
exec ip netns exec "$name" unshare --uts -- bash -c "hostname $name; exec bash -c \\"\\$0\\"" "$*"
"""


def why_not():
    """Why there can be no hosts here; empty if there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "it needs root, to make network namespaces"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"it needs {', '.join(missing)}"
    if not launcher().exists():
        return f"it needs MPICH in this environment: {launcher()} does not exist"
    made = run("ip", "netns", "add", f"{BRIDGE}0", check=False)
    if made.returncode:
        return f"no network namespace can be made here: {made.stderr.strip()}"
    run("ip", "netns", "del", f"{BRIDGE}0")
    return ""


def launcher():
    return Path(sys.executable).parent / "mpiexec.hydra"


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=30)


class Hosts:
    """``count`` hosts, numbered from 1, whose links take ``delay`` seconds; ``hosts`` makes them."""

    def __init__(self, count, delay, folder):
        self.count, self.delay = count, delay
        self.wires = []
        self.agent = Path(folder) / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)

    def up(self):
        self.down()  # an earlier run may have been killed
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{NET}.254/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for k in range(1, self.count + 1):
            name, link = self.name(k), self.link(k)
            run("ip", "netns", "add", name)
            if self.delay:
                self._wire(k)
            else:
                run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", link, "master", BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"{NET}.{k}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def _wire(self, k):
        """A namespace between the host and the bridge, in which a process passes frames on."""
        name, wire = self.name(k), f"{self.name(k)}wire"
        run("ip", "netns", "add", wire)
        run("ip", "link", "add", self.link(k), "type", "veth", "peer", "name", "near", "netns", wire)
        run("ip", "-n", wire, "link", "add", "far", "type", "veth", "peer", "name", "eth0", "netns", name)
        for end in ("near", "far"):
            run("ip", "-n", wire, "link", "set", end, "up")
        program = [sys.executable, str(Path(__file__).with_name("delay.py")), "near", "far", str(self.delay)]
        process = subprocess.Popen(["ip", "netns", "exec", wire, *program], stdout=subprocess.PIPE, text=True)
        self.wires.append(process)
        assert process.stdout.readline() == "ready\n", "the wire does not work"

    def down(self):
        for process in self.wires:
            process.kill()
            process.wait()
            process.stdout.close()
        for k in range(1, MOST + 1):
            for name in (self.name(k), f"{self.name(k)}wire"):
                for pid in run("ip", "netns", "pids", name, check=False).stdout.split():
                    run("kill", "-KILL", pid, check=False)
                run("ip", "netns", "del", name, check=False)
            run("ip", "link", "del", self.link(k), check=False)
        run("ip", "link", "del", BRIDGE, check=False)

    def name(self, k):
        return f"{BRIDGE}{k}"

    def link(self, k):
        return f"{BRIDGE}link{k}"

    def cut(self, k):
        run("ip", "link", "set", self.link(k), "down")

    def bytes_sent(self, k):
        """Bytes that have left a host over its link."""
        return int(Path(f"/sys/class/net/{self.link(k)}/statistics/rx_bytes").read_text())

    def command(self, ranks, *program):
        """The command that starts ranks on all hosts in turn."""
        addresses = ",".join(f"{NET}.{k}" for k in range(1, self.count + 1))
        start = [str(launcher()), "-launcher", "ssh", "-launcher-exec", str(self.agent), "-hosts", addresses]
        return [*start, "-iface", BRIDGE, "-n", str(ranks), sys.executable, *program]


def environment():
    """Of ranks that talk over TCP only."""
    paths = [Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.environ | {
        "MPIR_CVAR_CH4_NETMOD": "ofi",  # without these two, MPICH uses the memory that the hosts share
        "FI_PROVIDER": "tcp",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


@contextmanager
def hosts(count, delay=0.0):
    """Hosts that are gone afterwards, with all that runs on them, whatever happens."""
    with tempfile.TemporaryDirectory() as folder:
        made = Hosts(count, delay, folder)
        try:
            made.up()
            yield made
        finally:
            made.down()
