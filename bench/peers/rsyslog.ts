// rsyslog with a disk queue in front of a destination that is away: lines over TCP, each in the queue's files before the connection is read on.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { freePorts } from "../../test/support/free-ports.ts";
import { until } from "../../test/support/until.ts";

export type Syslog = AsyncDisposable & {
  readonly version: string;
  /** Resolves when every line is in the queue: the server closes a connection that it has read to its end. */
  send(chunks: readonly Uint8Array[]): Promise<void>;
  /** Processor time of the whole process so far. */
  cpuMs(): number;
};

const binary = "/usr/sbin/rsyslogd";
const tickMs = 10; // USER_HZ is 100 on every Linux.

/** `synced`: files of the queue are synced whenever they are written. Undefined where there is no rsyslog. */
export async function startRsyslog(
  directory: string,
  { synced }: { synced: boolean },
): Promise<Syslog | undefined> {
  if (!existsSync(binary)) return undefined;
  const shown = spawnSync(binary, ["-v"], { encoding: "utf8" }).stdout;
  const version = /rsyslogd\s+(\S+)/.exec(shown)?.[1] ?? "of unknown version";
  const [port = 0, nobody = 0] = await freePorts(2);
  const config = join(directory, "rsyslog.conf");
  writeFileSync(
    config,
    `
global(workDirectory="${directory}")
module(load="imptcp")
ruleset(name="spool" queue.type="Disk" queue.filename="queue" queue.maxFileSize="16m"
        queue.size="100000000" queue.maxDiskSpace="8g" queue.syncQueueFiles="${synced ? "on" : "off"}"
        queue.timeoutEnqueue="60000") {
  action(type="omfwd" target="127.0.0.1" port="${nobody}" protocol="tcp" action.resumeRetryCount="-1")
}
input(type="imptcp" address="127.0.0.1" port="${port}" ruleset="spool")
`,
  );
  const args = ["-n", "-f", config, "-i", join(directory, "pid")];
  const server = spawn(binary, args, { stdio: "ignore" });
  const end = (): void => void server.kill("SIGKILL");
  process.once("exit", end);
  await until("rsyslog", () => answers(port));
  return {
    version,
    send: async (chunks) => {
      const socket = connect(port, "127.0.0.1");
      const closed = once(socket, "close");
      socket.resume();
      for (const chunk of chunks) if (!socket.write(chunk)) await once(socket, "drain");
      socket.end();
      await closed;
    },
    cpuMs: () => cpuMs(server),
    [Symbol.asyncDispose]: async () => {
      process.removeListener("exit", end);
      end();
      await once(server, "exit");
    },
  };
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Fields 14 and 15 of its stat: user and system time, in ticks. */
function cpuMs({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}
