// rsync of a tree over loopback, from a daemon as from another host, into a directory of its own.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../test/support/free-ports.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { until } from "../../test/support/until.ts";

export class RsyncPeer implements AsyncDisposable {
  readonly #dir = tempDir();
  readonly #daemon: ChildProcess;
  readonly #url: string;

  private constructor(tree: string, port: number) {
    const config = join(this.#dir.path, "rsyncd.conf");
    const { username } = userInfo();
    writeFileSync(
      config,
      `uid = ${username}\nuse chroot = no\nreverse lookup = no\n[tree]\npath = ${tree}\nread only = yes\n`,
    );
    mkdirSync(join(this.#dir.path, "copy"));
    const args = ["--daemon", "--no-detach", "--address=127.0.0.1", `--port=${port}`];
    this.#daemon = spawn("rsync", [...args, `--config=${config}`], { stdio: "ignore" });
    this.#url = `rsync://127.0.0.1:${port}/tree/`;
  }

  static async start(tree: string): Promise<RsyncPeer> {
    const [port = 0] = await freePorts(1);
    const peer = new RsyncPeer(tree, port);
    await until("rsync listens", async () => {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.destroy();
      return true;
    });
    return peer;
  }

  /** Until what changed since the last time is on the disk here. */
  syncMs(): number {
    const began = performance.now();
    execFileSync("rsync", ["-a", "--delete", "--fsync", this.#url, join(this.#dir.path, "copy/")]);
    return performance.now() - began;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#daemon.exitCode === null && this.#daemon.kill()) await once(this.#daemon, "exit");
    this.#dir[Symbol.dispose]();
  }
}
