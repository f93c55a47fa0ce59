// The listening sockets that outlive this process because systemd keeps them (FileDescriptorStoreMax= in the unit, or a socket unit): what the process before
// gave to it is found here by its address, and what is opened anew is given to it. Outside systemd there is none.

import { closeSync } from "node:fs";
import { formatIp, parseIp } from "../core/addresses/ip.ts";
import type { SdNotify } from "./sd-notify.ts";
import { listenText, type ListenAddress } from "./settings-fields.ts";
import type { SocketCalls } from "./socket-calls.ts";

/** Where systemd begins to pass descriptors: SD_LISTEN_FDS_START of sd_listen_fds(3). */
const firstPassed = 3;
/** Far more than an agent has. */
const passedMax = 64;

export type KeptSocketsOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly pid: number;
  readonly calls: Pick<SocketCalls, "addressOf" | "closeOnExec" | "beginHandshakes">;
  readonly notify: Pick<SdNotify, "store" | "forget">;
  /** Whether the sockets come from the agent before, which hands over, and not from systemd: that keeps them only where it started that one. */
  readonly areHandedOver?: boolean;
};

type Passed = { readonly fd: number; readonly name: string; readonly address: string };

export class KeptSockets {
  readonly #notify: KeptSocketsOptions["notify"];
  readonly #passed: Passed[] = [];
  readonly #names = new Set<string>();
  readonly #isUnderSystemd: boolean;

  constructor({ env, pid, calls, notify, areHandedOver = false }: KeptSocketsOptions) {
    this.#notify = notify;
    this.#isUnderSystemd = env["NOTIFY_SOCKET"] !== undefined;
    // What was passed to somebody else is only told here, by an environment that went on. Nobody knows the number of a process before it is started.
    const told =
      areHandedOver || env["LISTEN_PID"] === `${pid}` ? Number(env["LISTEN_FDS"]) || 0 : 0;
    const names = (env["LISTEN_FDNAMES"] ?? "").split(":");
    for (let i = 0; i < Math.min(told, passedMax); i++) {
      const fd = firstPassed + i;
      const address = calls.addressOf(fd);
      // What is none of ours is left alone, whatever the environment says: it may be a descriptor of Node's.
      if (address === undefined) continue;
      calls.closeOnExec(fd);
      calls.beginHandshakes(fd);
      this.#passed.push({ fd, name: names[i] ?? "", address: canonical(address) });
      if (!areHandedOver || this.#isUnderSystemd) this.#names.add(names[i] ?? "");
    }
  }

  /** Returns the descriptor of the socket at this address, which is the caller's from now on; undefined if systemd keeps none. */
  take(address: ListenAddress): number | undefined {
    const at = this.#passed.findIndex((one) => one.address === canonical(address));
    return at === -1 ? undefined : this.#passed.splice(at, 1)[0]?.fd;
  }

  /** Gives a socket that was opened anew to systemd, if there is one. The descriptor stays the caller's. */
  async keep(address: ListenAddress, fd: number): Promise<void> {
    if (!this.#isUnderSystemd) return;
    this.#names.add(keptNameOf(address));
    await this.#notify.store(keptNameOf(address), fd);
  }

  /** Whether visitors wait at a socket of this process's when it has ended. */
  get holdsAny(): boolean {
    return this.#names.size > 0;
  }

  /** Closes what nobody took, for no setting names it any more. Returns the addresses. */
  async closeRest(): Promise<readonly string[]> {
    const rest = this.#passed.splice(0);
    for (const { fd, name } of rest) {
      closeSync(fd);
      this.#names.delete(name);
      await this.#notify.forget(name);
    }
    return rest.map(({ address }) => address);
  }

  /** Has all closed: where a start fails, visitors are refused and go elsewhere, instead of waiting for nobody. */
  async giveUp(): Promise<void> {
    for (const { fd } of this.#passed.splice(0)) closeSync(fd);
    for (const name of this.#names) await this.#notify.forget(name);
  }
}

/** An IPv6 address can be written in many ways. */
function canonical({ host, port }: ListenAddress): string {
  const ip = parseIp(host);
  return listenText({ host: ip === undefined ? host : formatIp(ip), port });
}

/** A name of the store has no colon (FDNAME= of sd_notify(3)). */
export function keptNameOf(address: ListenAddress): string {
  return listenText(address).replaceAll(":", "_");
}
