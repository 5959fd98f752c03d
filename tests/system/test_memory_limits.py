"""How much memory is free: the least that the machine and any control group of this process leave."""

import pytest

from multimargin.system.memory import available_bytes

GB = 1 << 30
MEMINFO = "MemTotal: 67108864 kB\nMemFree: 1024 kB\nMemAvailable: 33554432 kB"  # 32 GB free


def fake(root, cgroup, mountinfo, files):
    """A root directory with what Linux would say."""
    files = {"proc/meminfo": MEMINFO, "proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **files}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def group(folder, limit, used, unused=0, version=2):
    limit_file, used_file, entry = {
        2: ("memory.max", "memory.current", "inactive_file"),
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    }[version]
    stat = f"anon 1\nfile 2\n{entry} {unused}\nactive_file 0"
    values = {limit_file: limit, used_file: used, "memory.stat": stat}
    return {f"sys/fs/cgroup/{folder}{name}": value for name, value in values.items()}


V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = (
    "31 30 0:27 {inside} /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:28 {inside} /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory"
)


def test_no_group_has_a_limit(tmp_path):
    root = fake(tmp_path, "0::/user.slice", V2, group("user.slice/", "max", 5 * GB))
    assert available_bytes(root) == 32 * GB


def test_a_container_of_version_2(tmp_path):
    root = fake(tmp_path, "0::/", V2, group("", 4 * GB, 1 * GB))
    assert available_bytes(root) == 3 * GB


def test_pages_of_files_that_can_be_dropped_are_free(tmp_path):
    root = fake(tmp_path, "0::/", V2, group("", 4 * GB, 3 * GB, unused=2 * GB))
    assert available_bytes(root) == 3 * GB


@pytest.mark.parametrize(("outer", "expected"), [(6, 1), (3, 0.5), ("max", 1)])
def test_the_tightest_level_of_a_nested_slice_counts(tmp_path, outer, expected):
    """Limits above the process's own group hold too."""
    limit = outer if outer == "max" else outer * GB
    files = {
        **group("work.slice/", limit, int(2.5 * GB)),
        **group("work.slice/job.scope/", 2 * GB, 1 * GB),
    }
    root = fake(tmp_path, "0::/work.slice/job.scope", V2, files)
    assert available_bytes(root) == expected * GB


def test_a_batch_job_of_version_1(tmp_path):
    files = {
        **group("memory/", 1 << 63, 9 * GB, version=1),
        **group("memory/slurm/", 9223372036854771712, 9 * GB, version=1),
        **group("memory/slurm/job/", 8 * GB, 5 * GB, unused=1 * GB, version=1),
    }
    root = fake(
        tmp_path, "5:cpu,cpuacct:/slurm/job\n4:memory:/slurm/job\n0::/x", V1.format(inside="/"), files
    )
    assert available_bytes(root) == 4 * GB


def test_a_container_of_version_1_sees_its_own_group_as_the_top(tmp_path):
    """The path is that of the host, and the folder that is mounted is the group itself."""
    files = group("memory/", 2 * GB, 1 * GB, version=1)
    root = fake(tmp_path, "4:memory:/docker/abc", V1.format(inside="/docker/abc"), files)
    assert available_bytes(root) == 1 * GB


def test_both_versions_side_by_side(tmp_path):
    mounts = V1.format(inside="/") + "\n" + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
    files = group("memory/a/", 3 * GB, 1 * GB, version=1)
    root = fake(tmp_path, "4:memory:/a\n0::/a", mounts, files)
    assert available_bytes(root) == 2 * GB


def test_a_group_outside_of_what_is_mounted_counts_from_its_top(tmp_path):
    root = fake(tmp_path, "0::/../../elsewhere", V2, group("", 4 * GB, 1 * GB))
    assert available_bytes(root) == 3 * GB


def test_a_full_group_leaves_nothing(tmp_path):
    root = fake(tmp_path, "0::/", V2, group("", 1 * GB, 2 * GB))
    assert available_bytes(root) == 0


@pytest.mark.parametrize("broken", ["memory.max", "memory.current"])
def test_files_that_cannot_be_read_are_no_limit(tmp_path, broken):
    root = fake(tmp_path, "0::/", V2, {**group("", 4 * GB, 1 * GB), f"sys/fs/cgroup/{broken}": "?"})
    assert available_bytes(root) == 32 * GB


@pytest.mark.parametrize("broken", ["proc/self/cgroup", "proc/self/mountinfo"])
def test_lists_of_another_form_are_no_limit(tmp_path, broken):
    root = fake(tmp_path, "0::/", V2, {**group("", 4 * GB, 1 * GB), broken: "something else"})
    assert available_bytes(root) == 32 * GB


def test_a_system_that_says_nothing(tmp_path):
    assert available_bytes(tmp_path) > 0
