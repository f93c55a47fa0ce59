// Host metrics under node_exporter's own names, read from /proc: those that dashboards for hosts ask for
// first. The parsers are pure functions of the files' texts.
//
// Source: proc(5); names: node_exporter's cpu, diskstats, filesystem, loadavg, meminfo, netdev, stat, time
// and uname collectors.

export type HostFiles = {
  /** Returns the text of a file below /proc; undefined if it cannot be read. */
  readonly proc: (name: string) => string | undefined;
  /** Returns the sizes of a mount point; undefined if they cannot be read. */
  readonly space: (
    mountPoint: string,
  ) =>
    | { readonly sizeBytes: number; readonly freeBytes: number; readonly availBytes: number }
    | undefined;
  readonly nowS: number;
  readonly uname: {
    readonly sysname: string;
    readonly release: string;
    readonly nodename: string;
    readonly machine: string;
  };
};

type Sample = { readonly labels?: Readonly<Record<string, string>>; readonly value: number };
type Family = {
  readonly name: string;
  readonly kind: "counter" | "gauge";
  readonly help: string;
  readonly samples: readonly Sample[];
};

const ticksPerSecond = 100; // USER_HZ is 100 on every architecture Linux exports it for.
const sectorBytes = 512; // The unit of /proc/diskstats, whatever the device's own sector size.

export function exposeHost(files: HostFiles): string {
  const families = [
    ...cpu(files),
    ...memory(files),
    ...load(files),
    ...disks(files),
    ...networks(files),
    ...filesystems(files),
    ...clock(files),
  ];
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(
      ({ name, kind, help, samples }) =>
        `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${samples.map((sample) => line(name, sample)).join("")}`,
    )
    .join("");
}

function line(name: string, { labels = {}, value }: Sample): string {
  const inside = Object.entries(labels).map(
    ([label, text]) =>
      `${label}="${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return `${name}${inside.length > 0 ? `{${inside.join(",")}}` : ""} ${value}\n`;
}

function rows(text: string | undefined): readonly (readonly string[])[] {
  return (text ?? "")
    .split("\n")
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => fields[0] !== "");
}

function cpu({ proc }: HostFiles): readonly Family[] {
  const modes = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
  const stat = rows(proc("stat"));
  const samples = stat
    .filter(([name]) => /^cpu\d+$/.test(name ?? ""))
    .flatMap(([name, ...ticks]) =>
      modes.map((mode, i) => ({
        labels: { cpu: (name ?? "").slice(3), mode },
        value: Number(ticks[i] ?? 0) / ticksPerSecond,
      })),
    );
  const single = (key: string, name: string, kind: "counter" | "gauge", help: string): Family => {
    const value = stat.find(([first]) => first === key)?.[1];
    return { name, kind, help, samples: value === undefined ? [] : [{ value: Number(value) }] };
  };
  return [
    {
      name: "node_cpu_seconds_total",
      kind: "counter",
      help: "Seconds the CPUs spent in each mode.",
      samples,
    },
    single("ctxt", "node_context_switches_total", "counter", "Total number of context switches."),
    single("processes", "node_forks_total", "counter", "Total number of forks."),
    single("btime", "node_boot_time_seconds", "gauge", "Node boot time, in unixtime."),
    single(
      "procs_running",
      "node_procs_running",
      "gauge",
      "Number of processes in runnable state.",
    ),
    single(
      "procs_blocked",
      "node_procs_blocked",
      "gauge",
      "Number of processes blocked waiting for I/O to complete.",
    ),
  ];
}

function memory({ proc }: HostFiles): readonly Family[] {
  return rows(proc("meminfo")).map(([key, value, unit]) => {
    const field = (key ?? "").replace(/:$/, "").replace("(", "_").replace(")", "");
    const bytes = unit === "kB";
    return {
      name: `node_memory_${field}${bytes ? "_bytes" : ""}`,
      kind: "gauge",
      help: `Memory information field ${field}${bytes ? "_bytes" : ""}.`,
      samples: [{ value: Number(value) * (bytes ? 1_024 : 1) }],
    };
  });
}

function load({ proc }: HostFiles): readonly Family[] {
  const [averages] = rows(proc("loadavg"));
  if (averages === undefined) return [];
  return ["1", "5", "15"].map((minutes, i) => ({
    name: `node_load${minutes}`,
    kind: "gauge",
    help: `${minutes}m load average.`,
    samples: [{ value: Number(averages[i]) }],
  }));
}

function disks({ proc }: HostFiles): readonly Family[] {
  const devices = rows(proc("diskstats")).filter(
    ([, , name]) =>
      !/^(?:z?ram|loop|fd)\d+$|^(?:[hsv]|xv)d[a-z]\d+$|^nvme\d+n\d+p\d+$/.test(name ?? ""),
  );
  const family = (name: string, help: string, field: number, factor: number): Family => ({
    name: `node_disk_${name}_total`,
    kind: "counter",
    help,
    samples: devices.map((fields) => ({
      labels: { device: fields[2] ?? "" },
      value: Number(fields[field] ?? 0) * factor,
    })),
  });
  return [
    family("reads_completed", "The total number of reads completed successfully.", 3, 1),
    family("read_bytes", "The total number of bytes read successfully.", 5, sectorBytes),
    family("read_time_seconds", "The total number of seconds spent by all reads.", 6, 0.001),
    family("writes_completed", "The total number of writes completed successfully.", 7, 1),
    family("written_bytes", "The total number of bytes written successfully.", 9, sectorBytes),
    family(
      "write_time_seconds",
      "This is the total number of seconds spent by all writes.",
      10,
      0.001,
    ),
    family("io_time_seconds", "Total seconds spent doing I/Os.", 12, 0.001),
  ];
}

function networks({ proc }: HostFiles): readonly Family[] {
  const devices = (proc("net/dev") ?? "").split("\n").flatMap((row) => {
    const match = /^\s*([^:\s]+):\s*(.*)$/.exec(row);
    return match === null
      ? []
      : [{ device: match[1] ?? "", fields: (match[2] ?? "").split(/\s+/).map(Number) }];
  });
  const family = (name: string, field: number): Family => ({
    name: `node_network_${name}_total`,
    kind: "counter",
    help: `Network device statistic ${name}.`,
    samples: devices.map(({ device, fields }) => ({
      labels: { device },
      value: fields[field] ?? 0,
    })),
  });
  return [
    family("receive_bytes", 0),
    family("receive_packets", 1),
    family("receive_errs", 2),
    family("receive_drop", 3),
    family("transmit_bytes", 8),
    family("transmit_packets", 9),
    family("transmit_errs", 10),
    family("transmit_drop", 11),
  ];
}

function filesystems({ proc, space }: HostFiles): readonly Family[] {
  const pseudo =
    /^(?:autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|erofs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs)$/;
  // Asking a remote file system for its space would hold up the main thread for minutes if its server is
  // gone.
  const remote = /^(?:9p|afs|ceph|cifs|fuse(?:\..+)?|glusterfs|lustre|nfs4?|smb3|smbfs)$/;
  const unescape = (text: string): string =>
    text.replaceAll(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
  const seen = new Set<string>();
  const mounts = rows(proc("self/mounts")).flatMap(
    ([device = "", mountpoint = "", fstype = ""]) => {
      const point = unescape(mountpoint);
      const isLeftOut = (pseudo.test(fstype) || remote.test(fstype)) && point !== "/";
      if (isLeftOut || seen.has(point)) return [];
      seen.add(point);
      const sizes = space(point);
      return sizes === undefined
        ? []
        : [{ labels: { device: unescape(device), fstype, mountpoint: point }, sizes }];
    },
  );
  const family = (
    name: string,
    help: string,
    pick: (sizes: NonNullable<ReturnType<HostFiles["space"]>>) => number,
  ): Family => ({
    name: `node_filesystem_${name}_bytes`,
    kind: "gauge",
    help,
    samples: mounts.map(({ labels, sizes }) => ({ labels, value: pick(sizes) })),
  });
  return [
    family("size", "Filesystem size in bytes.", ({ sizeBytes }) => sizeBytes),
    family("free", "Filesystem free space in bytes.", ({ freeBytes }) => freeBytes),
    family(
      "avail",
      "Filesystem space available to non-root users in bytes.",
      ({ availBytes }) => availBytes,
    ),
  ];
}

function clock({ nowS, uname }: HostFiles): readonly Family[] {
  return [
    {
      name: "node_time_seconds",
      kind: "gauge",
      help: "System time in seconds since epoch (1970).",
      samples: [{ value: nowS }],
    },
    {
      name: "node_uname_info",
      kind: "gauge",
      help: "Labeled system information as provided by the uname system call.",
      samples: [{ labels: { ...uname }, value: 1 }],
    },
  ];
}
