// Tells systemd that the program is ready, reloading or stopping, feeds its watchdog, and gives it sockets to keep (sd_notify(3)). Outside systemd (no
// NOTIFY_SOCKET) it does nothing.

import { Mutex } from "./mutex.ts";
import { SocketCalls } from "./socket-calls.ts";

export type SdNotify = {
  /**
   * Sends sd_notify(3) assignments, e.g. `READY=1`, `STATUS=…`, in the order of the calls. Resolves when they
   * are sent or given up; never throws.
   */
  send(...assignments: readonly string[]): Promise<void>;
  /**
   * Gives the descriptor of a socket to systemd, which keeps it open over a restart of the unit, however that comes about, and passes it to the next start
   * under this name. Several may have one name. Never throws.
   */
  store(name: string, fd: number): Promise<void>;
  /** Lets systemd close what it keeps under this name. Never throws. */
  forget(name: string): Promise<void>;
  /** The WatchdogSec of the unit in milliseconds; undefined if no watchdog is set. */
  readonly watchdogMs: number | undefined;
};

/** A systemd that is busy with other units reads a little later. */
const retryMs = 20;
const giveUpMs = 5_000;

export function createSdNotify(
  env: NodeJS.ProcessEnv,
  openCalls: () => Pick<SocketCalls, "send"> = () => new SocketCalls(),
): SdNotify {
  const socket = env["NOTIFY_SOCKET"];
  const watchdogUs = Number(env["WATCHDOG_USEC"] ?? 0);
  const calls = socket === undefined ? undefined : openCalls();
  // A RELOADING that overtook its READY would leave the unit reloading for ever.
  const order = new Mutex();
  const send = async (assignments: readonly string[], fds: readonly number[]): Promise<void> => {
    if (socket === undefined || calls === undefined) return;
    await order.run(async () => {
      const text = assignments.map((line) => line.replaceAll("\n", " ")).join("\n");
      for (const began = performance.now(); performance.now() - began < giveUpMs;) {
        if (calls.send(socket, text, fds) !== "full") return;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    });
  };
  return {
    watchdogMs: socket !== undefined && watchdogUs > 0 ? watchdogUs / 1_000 : undefined,
    send: async (...assignments) => send(assignments, []),
    // systemd would close a socket that nobody listens on yet, for it is "hung up"; FDPOLL=0 keeps it from looking.
    store: async (name, fd) => send(["FDSTORE=1", `FDNAME=${name}`, "FDPOLL=0"], [fd]),
    forget: async (name) => send(["FDSTOREREMOVE=1", `FDNAME=${name}`], []),
  };
}

/**
 * Holds back what is told until systemd hears this process, which it does when `isMain` resolves: what others of a unit say is dropped (NotifyAccess=main). Until
 * then every call resolves at once.
 */
export function heldNotify(notify: SdNotify, isMain: Promise<unknown>): SdNotify {
  let isHeard = false;
  void isMain.then(() => (isHeard = true));
  const held = async (tell: () => Promise<void>): Promise<void> => {
    if (isHeard) return tell();
    void isMain.then(tell);
  };
  return {
    watchdogMs: notify.watchdogMs,
    send: async (...assignments) => held(async () => notify.send(...assignments)),
    store: async (name, fd) => held(async () => notify.store(name, fd)),
    forget: async (name) => held(async () => notify.forget(name)),
  };
}
