// What each unit must let its program do, and what for. test/system/units.test.ts compares it with the units and with what the programs did under strace(1).

export type UnitFeatures = {
  /** Address families, each with who needs it. */
  readonly families: Readonly<Record<string, string>>;
  /** `SystemCallFilter=` of the unit, in order. */
  readonly syscalls: readonly string[];
  /** System calls that are made and that the unit denies, with why the program goes on. */
  readonly survived: Readonly<Record<string, string>>;
  /** Of the bounding set. */
  readonly capabilities: readonly string[];
  /** Programs that are started, by the last part of their path. */
  readonly commands: Readonly<Record<string, string>>;
  /** Written to beside the state directory. */
  readonly devices: readonly string[];
  /** Read below /proc, /sys and /dev, apart from what is the process's own (/proc/self). `*` stands for anything. */
  readonly kernelFiles: Readonly<Record<string, string>>;
};

const ofNode = {
  "/proc/meminfo": "libuv: total memory; sysinfo(2) where it cannot be read",
  "/proc/version_signature": "libuv: the kernel of Ubuntu",
  "/proc/sys/vm/overcommit_memory": "the allocator; it takes the default where it cannot be read",
  "/proc/stat": "libuv: processors",
  "/proc/cpuinfo": "libuv: processors",
  "/sys/fs/cgroup/*": "libuv: the memory limit of the unit",
  "/sys/devices/system/cpu/*": "V8, OpenSSL and the allocator: processors and clock",
  "/sys/kernel/mm/transparent_hugepage/*": "V8",
  "/dev/urandom": "OpenSSL and SQLite",
  "/dev/null": "what children read",
};

const survived = {
  fchown: "SQLite gives a journal to the owner of its database, and only tries as root",
  chown: "SQLite, the same",
};

const syscalls = ["@system-service", "~@privileged @resources"];

export const unitFeatures: Readonly<Record<"agent" | "central", UnitFeatures>> = {
  agent: {
    families: {
      AF_UNIX: "control socket, journal, systemd",
      AF_INET: "visitors, origins, central",
      AF_INET6: "visitors, origins, central",
      AF_NETLINK:
        "os.networkInterfaces(): no origin may be a listener of the agent; getaddrinfo(3)",
    },
    syscalls: [...syscalls, "setpriority sched_setscheduler"],
    survived,
    capabilities: ["CAP_NET_BIND_SERVICE"],
    commands: {
      node: "the matcher",
      sync: "what was written before a crash of the host",
    },
    devices: ["/dev/null"],
    kernelFiles: {
      ...ofNode,
      "/proc/sys/kernel/random/boot_id": "whether the host was restarted",
      "/proc/loadavg": "/metrics/node_exporter",
      "/proc/diskstats": "/metrics/node_exporter",
      "/proc/net/dev": "/metrics/node_exporter",
      "/proc/uptime": "/metrics/node_exporter",
    },
  },
  central: {
    families: {
      AF_UNIX: "control socket, journal, systemd",
      AF_INET: "customers, agents, mail servers, chat hooks",
      AF_INET6: "customers, agents, mail servers, chat hooks",
      AF_NETLINK: "getaddrinfo(3), and the mail client's os.networkInterfaces()",
    },
    syscalls: [...syscalls, "setpriority"],
    survived,
    capabilities: [],
    commands: {},
    devices: ["/dev/null"],
    kernelFiles: ofNode,
  },
};
