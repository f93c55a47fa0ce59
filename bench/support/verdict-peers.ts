// Others who can say whether an address is in a set: net.BlockList of Node, a loop over ipaddr.js, and ip-set, an interval tree from npm, which is installed
// into a directory of its own for the run.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { BlockList } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ipaddr from "ipaddr.js";
import type { IpFamily } from "../../src/core/addresses/ip.ts";
import type { SetElement } from "../../src/core/addresses/set-digest.ts";

export type Peer = {
  readonly name: string;
  /** More ranges would take minutes to take in, or to ask. */
  readonly rangesMax: number;
  readonly open: (family: IpFamily, ranges: readonly SetElement[]) => (ip: string) => boolean;
};

const blockList: Peer = {
  name: "net.BlockList",
  rangesMax: 1_000_000,
  open: (family, ranges) => {
    const list = new BlockList();
    const type = family === 4 ? "ipv4" : "ipv6";
    for (const { range } of ranges) {
      const [address = "", prefix] = range.split("/");
      if (prefix === undefined) list.addAddress(address, type);
      else list.addSubnet(address, Number(prefix), type);
    }
    return (ip) => list.check(ip, type);
  },
};

const loop: Peer = {
  name: "loop over ipaddr.js",
  rangesMax: 100_000,
  open: (family, ranges) => {
    if (family === 4) {
      const cidr = (range: string): string => (range.includes("/") ? range : `${range}/32`);
      const parsed = ranges.map(({ range }) => ipaddr.IPv4.parseCIDR(cidr(range)));
      return (ip) => {
        const address = ipaddr.IPv4.parse(ip);
        return parsed.some((range) => address.match(range));
      };
    }
    const parsed = ranges.map(({ range }) => ipaddr.IPv6.parseCIDR(range));
    return (ip) => {
      const address = ipaddr.IPv6.parse(ip);
      return parsed.some((range) => address.match(range));
    };
  },
};

type Intervals = { add(range: string): void; contains(ip: string): boolean };

/** Undefined: it cannot be installed here. */
export function installIpSet(): (Peer & Disposable) | undefined {
  const directory = mkdtempSync(join(tmpdir(), "accel-bench-"));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "ip-set@3.0.0"];
    execFileSync("npm", install, { cwd: directory, stdio: "ignore", timeout: 60_000 });
    // What the package exports.
    const IpSet = createRequire(join(directory, "x.js"))("ip-set") as new () => Intervals;
    const open: Peer["open"] = (_family, ranges) => {
      const set = new IpSet();
      for (const { range } of ranges) set.add(range);
      return (ip) => set.contains(ip);
    };
    return { name: "ip-set 3.0.0", rangesMax: 100_000, open, [Symbol.dispose]: remove };
  } catch {
    remove();
    return undefined;
  }
}

export const peers: readonly Peer[] = [blockList, loop];
