// A real Debian 12 that boots: made once by debootstrap, copied for each use, booted by systemd-nspawn with this host's network.

import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { OwnCgroup } from "./own-cgroup.ts";
import { until } from "./until.ts";

const run = promisify(execFile);

const has = (tool: string): boolean => spawnSync(tool, ["--version"]).error === undefined;
export const bootedMissing =
  process.getuid?.() !== 0 ||
  !["debootstrap", "systemd-nspawn", "dpkg-deb", "gpg", "gpg-agent"].every(has);
export const bootedHint =
  "needs root, debootstrap, systemd-nspawn, gpg: apt-get install debootstrap systemd-container gpg gpg-agent";

/** As small as Debian gets and still boots: nothing is in it that a package of ours does not ask for. */
const bootstrap = ["--variant=minbase", "--include=systemd,systemd-sysv,dbus", "bookworm"];
const keptIn = join(import.meta.dirname, "../../var/debian-12");

/** Makes the system that others are copied from, unless it is there. `.ci/run` does so ahead of the tests. */
export function ensureBareDebian(): string {
  if (existsSync(keptIn)) return keptIn;
  mkdirSync(dirname(keptIn), { recursive: true });
  const making = `${keptIn}.${process.pid}`;
  rmSync(making, { recursive: true, force: true });
  execFileSync("debootstrap", [...bootstrap, making], { stdio: ["ignore", "ignore", "inherit"] });
  renameSync(making, keptIn);
  return keptIn;
}

export type Said = { readonly code: number; readonly out: string; readonly err: string };

let made = 0;

export class BootedDebian implements AsyncDisposable {
  readonly root: string;
  readonly #name: string;
  readonly #cgroup: OwnCgroup;
  #container: ChildProcess | undefined;
  #console = "";

  private constructor(root: string) {
    this.root = root;
    this.#name = `accel-${process.pid}-${++made}`;
    this.#cgroup = OwnCgroup.make(this.#name);
  }

  /** Boots a copy below `dir`. It runs until it is disposed of. `before`: what is done to it first. */
  static async boot(
    dir: string,
    before: (root: string) => void = () => undefined,
  ): Promise<BootedDebian> {
    const root = join(dir, "debian");
    // Also where what is kept is a link to it.
    execFileSync("cp", ["-a", `${ensureBareDebian()}/.`, root]);
    writeFileSync(join(root, "etc/hostname"), "edge\n");
    copyFileSync("/etc/resolv.conf", join(root, "etc/resolv.conf"));
    before(root);
    const booted = new BootedDebian(root);
    booted.#start();
    await booted.#isUp();
    return booted;
  }

  #start(): void {
    // The same network: tests ask from outside as visitors do, and apt reaches Debian.
    const options = [
      "--boot",
      "--register=no",
      "--keep-unit",
      "--console=pipe",
      "--resolv-conf=off",
    ];
    const line = `${this.#cgroup.enter}\nexec systemd-nspawn "$@"`;
    const container = spawn(
      "sh",
      ["-c", line, "sh", "-D", this.root, "-M", this.#name, ...options],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    const keep = (text: Buffer): void =>
      void (this.#console = (this.#console + String(text)).slice(-20_000));
    container.stdout.on("data", keep);
    container.stderr.on("data", keep);
    this.#container = container;
  }

  async #isUp(): Promise<void> {
    await until(
      "the system is up",
      async () => {
        if (this.#container?.exitCode !== null)
          throw new Error(`the system ended:\n${this.#console}`);
        if (this.#leader() === undefined) return false;
        const { out } = await this.sh("systemctl is-system-running");
        return /running|degraded/.test(out);
      },
      90_000,
    );
  }

  /** Its process 1, as this host numbers it. */
  #leader(): number | undefined {
    const pid = this.#container?.pid;
    if (pid === undefined) return undefined;
    try {
      const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
      return first === undefined || first === "" ? undefined : Number(first);
    } catch {
      return undefined; // It has ended.
    }
  }

  /** Runs a line of shell in it as root, with `input` on standard input. */
  async sh(line: string, input = ""): Promise<Said> {
    const leader = this.#leader();
    if (leader === undefined) return { code: -1, out: "", err: "it is not up" };
    const namespaces = ["--mount", "--uts", "--ipc", "--pid", "--root", "--wd"];
    const env = {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/root",
      LANG: "C.UTF-8",
      DEBIAN_FRONTEND: "noninteractive",
    };
    const running = run(
      "nsenter",
      ["--target", String(leader), ...namespaces, "bash", "-c", line],
      { env, maxBuffer: 2 ** 24 },
    );
    // A line that ends without reading it, as where the system has just gone down: its exit status tells.
    running.child.stdin?.on("error", () => undefined);
    running.child.stdin?.end(input);
    try {
      const { stdout, stderr } = await running;
      return { code: 0, out: stdout, err: stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, err: stderr };
    }
  }

  /** Runs a line that must succeed, and returns what it wrote to standard output. */
  async must(line: string, input = ""): Promise<string> {
    const { code, out, err } = await this.sh(line, input);
    if (code !== 0) {
      const { out: journal } = await this.sh("journalctl --no-pager -q -n 40");
      throw new Error(`${line}: exit status ${code}\n${out}\n${err}\n${journal}`);
    }
    return out;
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  /** Powers it off as an operator does, and boots it again. */
  async reboot(): Promise<void> {
    const container = this.#container;
    if (container === undefined) throw new Error("it is not up");
    const off = once(container, "exit");
    await this.sh("systemctl poweroff");
    await off;
    this.#start();
    await this.#isUp();
  }

  /** What `systemd-analyze security` says of a unit, and prints: 0 is best, 10 is worst. */
  async exposure(unit: string): Promise<number> {
    const said = await this.must(`systemd-analyze security --no-pager ${unit} | tail -1`);
    process.stdout.write(said);
    return Number(/: (\d+\.\d+) /.exec(said)?.[1]);
  }

  /** What its journal has of a unit. */
  journal(unit: string): Promise<string> {
    return this.must(`journalctl --no-pager -q -u ${unit}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _cgroup = this.#cgroup;
    const container = this.#container;
    if (container === undefined || container.exitCode !== null) return;
    const gone = once(container, "exit");
    // The second one ends it at once, whatever its services do.
    container.kill("SIGTERM");
    const timer = setTimeout(() => container.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(timer);
  }
}
