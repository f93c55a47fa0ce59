// Host metrics from canned /proc texts, line by line, and from the host that the test runs on.

import { expect, test } from "vitest";
import { exposeHost, type HostFiles } from "../../../src/agent/admin/node-collectors.ts";
import { lintMetrics, prometheusHint, prometheusMissing } from "../../support/prometheus.ts";
import { hostFiles } from "../../../src/agent/admin/admin-server.ts";

const texts: Readonly<Record<string, string>> = {
  stat: `cpu  300 2 3 400 5 6 7 8 0 0
cpu0 100 1 150 200 25 6 7 8 50 0
cpu1 200 1 0 200 0 0 0 0 0 0
intr 12345 6 7
ctxt 9876543
btime 1700000000
processes 4242
procs_running 3
procs_blocked 1
softirq 1 2 3
`,
  meminfo: `MemTotal:       16000000 kB
MemAvailable:    8000000 kB
Active(anon):       1024 kB
HugePages_Total:       7
`,
  loadavg: "0.50 1.25 2.00 3/456 7890\n",
  diskstats: `   8       0 sda 1000 5 2048 500 300 2 4096 1500 0 2500 2000 0 0 0 0
   8       1 sda1 999 5 2048 500 300 2 4096 1500 0 2500 2000
 259       0 nvme0n1 10 0 20 30 40 0 50 60 0 70 80
 259       1 nvme0n1p1 10 0 20 30 40 0 50 60 0 70 80
 253       0 dm-0 1 0 2 3 4 0 5 6 0 7 8
   7       0 loop0 1 0 2 3 4 0 5 6 0 7 8
 252       0 zram0 1 0 2 3 4 0 5 6 0 7 8
`,
  "net/dev": `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0
  eth0:123456789 1000 1 2 0 0 0 5 987654321 2000 3 4 0 0 0 0
`,
  "self/mounts": `/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
tmpfs /run tmpfs rw,size=800k 0 0
/dev/sdb1 /srv/with\\040blank\\134 xfs rw 0 0
/dev/sdb1 /srv/with\\040blank\\134 xfs rw 0 0
overlay /var/lib/docker/x overlay rw 0 0
/dev/loop3 /snap/core squashfs ro 0 0
server:/export /mnt/remote nfs4 rw 0 0
who@where: /mnt/ssh fuse.sshfs rw 0 0
/dev/gone /gone ext4 rw 0 0
`,
};

const asked: string[] = [];
const canned: HostFiles = {
  proc: (name) => texts[name],
  space: (mountPoint) => {
    asked.push(mountPoint);
    return mountPoint === "/gone"
      ? undefined
      : { sizeBytes: 1_000, freeBytes: 600, availBytes: 500 };
  },
  nowS: 1_700_000_123.5,
  uname: { sysname: "Linux", release: "6.1", nodename: 'edge"1', machine: "x86_64" },
};

const exposition = exposeHost(canned);
const samples = exposition.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test.each([
  'node_cpu_seconds_total{cpu="0",mode="user"} 1',
  'node_cpu_seconds_total{cpu="0",mode="system"} 1.5',
  'node_cpu_seconds_total{cpu="0",mode="steal"} 0.08',
  'node_cpu_seconds_total{cpu="1",mode="idle"} 2',
  "node_context_switches_total 9876543",
  "node_forks_total 4242",
  "node_boot_time_seconds 1700000000",
  "node_procs_running 3",
  "node_procs_blocked 1",
  "node_memory_MemTotal_bytes 16384000000",
  "node_memory_Active_anon_bytes 1048576",
  "node_memory_HugePages_Total 7",
  "node_load1 0.5",
  "node_load5 1.25",
  "node_load15 2",
  'node_disk_reads_completed_total{device="sda"} 1000',
  'node_disk_read_bytes_total{device="sda"} 1048576',
  'node_disk_read_time_seconds_total{device="sda"} 0.5',
  'node_disk_writes_completed_total{device="sda"} 300',
  'node_disk_written_bytes_total{device="sda"} 2097152',
  'node_disk_write_time_seconds_total{device="sda"} 1.5',
  'node_disk_io_time_seconds_total{device="sda"} 2.5',
  'node_network_receive_bytes_total{device="eth0"} 123456789',
  'node_network_receive_packets_total{device="eth0"} 1000',
  'node_network_receive_errs_total{device="eth0"} 1',
  'node_network_receive_drop_total{device="eth0"} 2',
  'node_network_transmit_bytes_total{device="eth0"} 987654321',
  'node_network_transmit_packets_total{device="eth0"} 2000',
  'node_network_transmit_errs_total{device="eth0"} 3',
  'node_network_transmit_drop_total{device="eth0"} 4',
  'node_filesystem_size_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"} 1000',
  'node_filesystem_free_bytes{device="tmpfs",fstype="tmpfs",mountpoint="/run"} 600',
  'node_filesystem_avail_bytes{device="/dev/sdb1",fstype="xfs",mountpoint="/srv/with blank\\\\"} 500',
  "node_time_seconds 1700000123.5",
  'node_uname_info{sysname="Linux",release="6.1",nodename="edge\\"1",machine="x86_64"} 1',
])("%s", (sample) => {
  expect(samples).toContain(sample);
});

test("each family once, each sample once, partitions and made-up devices left out", () => {
  const families = exposition.match(/(?<=^# TYPE )\S+/gm) ?? [];
  expect(new Set(families).size).toBe(families.length);
  expect(new Set(samples).size).toBe(samples.length);
  const devices = [...exposition.matchAll(/^node_disk_reads_completed_total\{device="(.*)"\}/gm)];
  expect(devices.map(([, device]) => device)).toEqual(["sda", "nvme0n1", "dm-0"]);
});

test("network filesystems are not asked: one whose server is gone would hold up the agent", () => {
  expect([...new Set(asked)]).toEqual(["/", "/run", "/srv/with blank\\", "/gone"]);
});

test("what cannot be read leaves its families out, nothing else", () => {
  for (const name of Object.keys(texts)) {
    const fewer = exposeHost({
      ...canned,
      proc: (other) => (other === name ? undefined : texts[other]),
    });
    expect(fewer.split("\n").length).toBeLessThan(exposition.split("\n").length);
    expect(fewer).toContain("node_time_seconds");
  }
  expect(exposeHost({ ...canned, proc: () => undefined })).not.toMatch(/NaN|undefined/);
});

test("texts of another shape give no nonsense", () => {
  const odd = {
    stat: "cpu0\n",
    meminfo: "\n\n",
    loadavg: "",
    diskstats: "x\n",
    "net/dev": "eth0:\n",
    "self/mounts": "\n",
  };
  const parsed = exposeHost({ ...canned, proc: (name) => new Map(Object.entries(odd)).get(name) });
  expect(parsed).not.toMatch(/undefined|null/);
});

const isLinux = process.platform === "linux";

test.skipIf(!isLinux)("this host's own /proc (Linux only)", () => {
  const host = exposeHost(hostFiles(() => new Date()));
  for (const family of [
    "node_cpu_seconds_total",
    "node_memory_MemTotal_bytes",
    "node_load1",
    "node_network_receive_bytes_total",
    "node_boot_time_seconds",
    "node_uname_info",
  ])
    expect(host).toMatch(new RegExp(`^${family}[ {]`, "m"));
  expect(host).not.toMatch(/NaN|undefined/);
});

test.skipIf(prometheusMissing)(
  `promtool finds only the names that node_exporter has too (${prometheusHint})`,
  () => {
    for (const text of [exposition, isLinux ? exposeHost(hostFiles(() => new Date())) : ""]) {
      const findings = lintMetrics(text)
        .split("\n")
        .filter((line) => line !== "");
      expect(findings.filter((line) => !/^node_memory_\w+ .*camelCase/.test(line))).toEqual([]);
    }
  },
);
