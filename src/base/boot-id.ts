// Tells one boot of this host from another.

import { readFileSync } from "node:fs";

/** Returns the kernel's boot id, which is new at each boot and so after each loss of power. Linux only. */
export function kernelBootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}
