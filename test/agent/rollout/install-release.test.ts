// The host's installer of releases, with stand-ins for apt, dpkg and systemd that note what they are asked: what it takes from the agent's file, and what it tells.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { tempDir } from "../../support/temp-dir.ts";

const script = join(import.meta.dirname, "../../../packaging/accel-agent-rollout/install-release");
const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());

/** What the stand-ins know; each is a file below the host. */
type HostFacts = {
  readonly installed: string;
  /** Versions that the repository has. */
  readonly offered: readonly string[];
  readonly held?: string;
  /** Versions with which the unit does not stay up. */
  readonly broken?: readonly string[];
  /** Versions that the agent does not hand over to: 1.0.0 serves on. */
  readonly refused?: readonly string[];
  /** What a simulation names beside the two packages. */
  readonly other?: string;
  /** What becomes of the order while the repository is asked: another one, or none (empty). */
  readonly meanwhile?: string;
  readonly ended?: Partial<typeof endedByItself>;
};

/** What systemd and the journal know of a unit that is not up. */
const endedByItself = {
  ActiveState: "activating",
  Result: "exit-code",
  ExecMainStatus: "1",
  running: "running",
  systemd: "accel-agent.service: Main process exited, code=exited, status=1/FAILURE",
  agent: "TypeError: it \x1b[31mis broken\n    at run (agent.js:1:1)",
};

const tools: Readonly<Record<string, string>> = {
  "dpkg-query": 'cat "$HOST/installed"',
  "apt-mark": 'cat "$HOST/held"',
  dpkg: `case "$1" in
    --compare-versions) exec /usr/bin/dpkg "$@" ;;
    *) exit 1 ;;
  esac`,
  "apt-get": `echo "apt-get $*" >>"$HOST/asked"
    version=; mode=install
    for one in "$@"; do
      case "$one" in accel-agent=*) version=\${one#*=} ;; update | --simulate) mode=$one ;; esac
    done
    if [ "$mode" = update ]; then
      cat "$HOST/state/outcome" >"$HOST/told"
      [ -e "$HOST/meanwhile" ] && { rm "$HOST/order"; [ -s "$HOST/meanwhile" ] && cp "$HOST/meanwhile" "$HOST/order"; }
      exit 0
    fi
    grep -qx "$version" "$HOST/offered" || { echo "E: Version '$version' for 'accel-agent' was not found"; exit 100; }
    echo "Inst accel-common [1] ($version x [all])"
    echo "Inst accel-agent [1] ($version x [all])"
    cat "$HOST/other"
    [ "$mode" = --simulate ] || printf %s "$version" >"$HOST/installed"`,
  systemctl: `case "$*" in
    list-units*) echo "accel-agent.service loaded active running the agent" ;;
    is-active*) ! grep -qx "$(cat "$HOST/installed")" "$HOST/broken" ;;
    *NRestarts*) if grep -qx "$(cat "$HOST/installed")" "$HOST/broken"; then echo x >>"$HOST/restarts"; fi; grep -c x "$HOST/restarts" || true ;;
    *MainPID*) echo 77 ;;
    *ActiveState* | *Result* | *ExecMainStatus* | is-system-running) cat "$HOST/systemd-$([ "$1" = show ] && echo "$3" || echo running)" ;;
  esac`,
  readlink: `serves=$(cat "$HOST/installed")
    if grep -qx "$serves" "$HOST/refused"; then serves=1.0.0; fi
    echo "/usr/lib/accel-agent/$serves/bin/node"`,
  journalctl: `case "$*" in *_PID=1*) cat "$HOST/journal-systemd" ;; *) cat "$HOST/journal-agent" ;; esac`,
  sleep: "true",
};

function host(facts: HostFacts) {
  const { installed, offered, held = "", broken = [], refused = [], other = "", meanwhile } = facts;
  const { systemd, agent, ...shown } = { ...endedByItself, ...facts.ended };
  const home = mkdtempSync(join(dir.path, "host-"));
  const at = (name: string): string => join(home, name);
  for (const name of ["bin", "state", "sources"]) mkdirSync(at(name));
  for (const [name, body] of Object.entries(tools)) {
    writeFileSync(at(`bin/${name}`), `#!/bin/sh\n${body}\n`);
    chmodSync(at(`bin/${name}`), 0o755);
  }
  const lines = (of: readonly string[]): string => of.map((one) => `${one}\n`).join("");
  writeFileSync(at("installed"), installed);
  writeFileSync(at("offered"), lines(offered));
  writeFileSync(at("held"), held);
  writeFileSync(at("broken"), lines(broken));
  writeFileSync(at("refused"), lines(refused));
  writeFileSync(at("other"), other);
  writeFileSync(at("journal-systemd"), `${systemd}\n`);
  writeFileSync(at("journal-agent"), `${agent}\n`);
  for (const [name, value] of Object.entries(shown)) writeFileSync(at(`systemd-${name}`), value);
  if (meanwhile !== undefined) writeFileSync(at("meanwhile"), meanwhile);
  for (const name of ["restarts", "asked"]) writeFileSync(at(name), "");
  writeFileSync(at("sources/accel-agent.list"), "deb https://packages.example.test ./\n");
  const read = (name: string): string => readFileSync(at(name), "utf8");
  return {
    at,
    read,
    run(): string {
      const args = [script, at("order"), at("state"), at("sources")];
      const { status, stderr } = spawnSync("/bin/sh", args, {
        encoding: "utf8",
        env: { HOST: home, PATH: `${at("bin")}:/usr/bin:/bin` },
      });
      expect([status, stderr]).toEqual([0, expect.any(String)]);
      return stderr;
    },
    order(text: string): void {
      writeFileSync(at("order"), text);
      this.run();
    },
    outcome: () => read("state/outcome").trim(),
  };
}

test("the release is installed by both packages, from our repository alone, signed", () => {
  const one = host({ installed: "1.0.0", offered: ["1.0.0", "2.0.0"] });
  one.order("7-go 2.0.0\n");
  expect(one.outcome()).toBe("7-go 2.0.0 done");
  expect(one.read("installed")).toBe("2.0.0");
  expect(one.read("state/before")).toBe("1.0.0\n");
  const asked = one.read("asked").trim().split("\n");
  expect(asked.map((line) => line.split(" ").slice(-3).join(" "))).toEqual([
    expect.stringMatching(/ update$/),
    "install accel-agent=2.0.0 accel-common=2.0.0",
    "install accel-agent=2.0.0 accel-common=2.0.0",
  ]);
  for (const line of asked) {
    expect(line).toContain(`Dir::Etc::SourceList=${one.at("sources/accel-agent.list")}`);
    expect(line).toContain("Dir::Etc::SourceParts=-");
    expect(line).toContain("APT::Get::AllowUnauthenticated=false");
    expect(line).toContain("--no-remove");
  }
});

test("it goes back to the version that was replaced last, and to no other older one", () => {
  const one = host({ installed: "1.5.0", offered: ["1.0.0", "1.5.0", "2.0.0"] });
  one.order("7-go 2.0.0\n");
  one.order("8-go 1.0.0\n");
  expect(one.outcome()).toBe(
    "8-go 1.0.0 refused 1.0.0 is older than 2.0.0, and not the version that was replaced last",
  );
  one.order("7-back 1.5.0\n");
  expect(one.outcome()).toBe("7-back 1.5.0 done");
  expect(one.read("installed")).toBe("1.5.0");
});

test("a release that does not stay up goes back, with the journal's last words", () => {
  const one = host({ installed: "1.0.0", offered: ["1.0.0", "2.0.0"], broken: ["2.0.0"] });
  one.order("7-go 2.0.0\n");
  expect(one.outcome()).toBe(
    "7-go 2.0.0 returned 2.0.0 did not stay up: accel-agent.service ended by itself with the status 1/FAILURE: TypeError: it  [31mis broken",
  );
  expect(one.read("installed")).toBe("1.0.0");
});

test.each<[string, NonNullable<HostFacts["ended"]>, string]>([
  [
    "was stopped",
    {
      ActiveState: "inactive",
      Result: "success",
      ExecMainStatus: "0",
      systemd: "Stopping accel-agent.service",
    },
    "accel-agent.service was stopped by an order to systemd (exit status 0)",
  ],
  ["is on a host that goes down", { running: "stopping" }, "the host shuts down"],
  [
    "was killed",
    {
      Result: "watchdog",
      systemd: "accel-agent.service: Main process exited, code=killed, status=6/ABRT",
    },
    "accel-agent.service was killed by the signal 6/ABRT (result watchdog)",
  ],
  [
    "does not get ready",
    { Result: "success", systemd: "Starting accel-agent.service" },
    "accel-agent.service is activating, and did not end (result success): see journalctl -u accel-agent.service",
  ],
  [
    "ended without a word",
    { agent: '{"level":"error","msg":"a request failed","err":{"stack":"Error: x\\n at y"}}' },
    "accel-agent.service ended by itself with the status 1/FAILURE: see journalctl -u accel-agent.service",
  ],
])(
  "an agent that %s: what is known of it is told in one line, and no error of a request",
  (_, ended, words) => {
    const request = '{"level":"error","msg":"a request failed","err":{"stack":"Error: x\\n at y"}}';
    const one = host({
      installed: "1.0.0",
      offered: ["1.0.0", "2.0.0"],
      broken: ["2.0.0"],
      ended: { agent: request, ...ended },
    });
    one.order("7-go 2.0.0\n");
    expect(one.outcome()).toBe(`7-go 2.0.0 returned 2.0.0 did not stay up: ${words}`);
  },
);

test("a release that does not take over goes back at once, while the one before serves", () => {
  const one = host({ installed: "1.0.0", offered: ["1.0.0", "2.0.0"], refused: ["2.0.0"] });
  one.order("7-go 2.0.0\n");
  expect(one.outcome()).toMatch(/^7-go 2\.0\.0 returned 2\.0\.0 did not take over: TypeError/);
  expect(one.read("installed")).toBe("1.0.0");
  expect(one.read("restarts")).toBe("");
});

test("a version that does not stay up after it was gone back to is told, and nothing else is tried", () => {
  const one = host({ installed: "1.0.0", offered: ["1.0.0", "2.0.0"] });
  one.order("7-go 2.0.0\n");
  writeFileSync(one.at("broken"), "1.0.0\n");
  one.order("7-back 1.0.0\n");
  expect(one.outcome()).toMatch(/^7-back 1\.0\.0 failed 1\.0\.0 did not stay up: /);
  expect(one.read("installed")).toBe("1.0.0");
});

test("held packages, versions that are not there and other packages change nothing", () => {
  const held = host({ installed: "1.0.0", offered: ["2.0.0"], held: "accel-common\n" });
  held.order("7-go 2.0.0\n");
  expect(held.outcome()).toMatch(/^7-go 2\.0\.0 refused pinned: its packages are held/);
  expect(held.read("asked")).toBe("");

  const missing = host({ installed: "1.0.0", offered: ["1.0.0"] });
  missing.order("7-go 2.0.0\n");
  expect(missing.outcome()).toBe(
    "7-go 2.0.0 failed E: Version '2.0.0' for 'accel-agent' was not found",
  );

  const other = host({ installed: "1.0.0", offered: ["2.0.0"], other: "Inst openssl (1 x)\n" });
  other.order("7-go 2.0.0\n");
  expect(other.outcome()).toBe("7-go 2.0.0 failed it would change other packages too: openssl");

  const bare = host({ installed: "1.0.0", offered: ["2.0.0"] });
  rmSync(bare.at("sources/accel-agent.list"));
  bare.order("7-go 2.0.0\n");
  expect(bare.outcome()).toMatch(/^7-go 2\.0\.0 failed this host has no /);

  for (const one of [held, missing, other, bare]) expect(one.read("installed")).toBe("1.0.0");
});

test("an order that is taken back while it is taken installs nothing: the installer says that it installs before it looks once more", () => {
  for (const meanwhile of ["", "7-back 1.0.0\n", "8-go 2.0.0\n"]) {
    const one = host({ installed: "1.0.0", offered: ["1.0.0", "2.0.0"], meanwhile });
    one.order("7-go 2.0.0\n");
    expect(one.read("told").trim()).toBe("7-go 2.0.0 installing");
    expect(one.outcome()).toBe("7-go 2.0.0 refused taken back before it was installed");
    expect(one.read("installed")).toBe("1.0.0");
    expect(() => one.read("state/before")).toThrow("ENOENT");
  }
  const same = host({ installed: "1.0.0", offered: ["2.0.0"], meanwhile: "7-go 2.0.0\n" });
  same.order("7-go 2.0.0\n");
  expect(same.outcome()).toBe("7-go 2.0.0 done");
});

test("what the agent wrote is a version or nothing", () => {
  const one = host({ installed: "1.0.0", offered: ["2.0.0"] });
  for (const text of [
    "",
    "7-go\n",
    "7-go 2.0.0 --reinstall\n",
    "7-go $(touch pwned)\n",
    "7-go 2.0.0;reboot\n",
    "../../x 2.0.0\n",
    "7-go -o\n",
    `7-go 2${"0".repeat(300)}\n`,
  ])
    one.order(text);
  expect(() => one.outcome()).toThrow("ENOENT");
  rmSync(one.at("order"));
  writeFileSync(one.at("elsewhere"), "7-go 2.0.0\n");
  symlinkSync(one.at("elsewhere"), one.at("order"));
  one.run();
  rmSync(one.at("order"));
  mkdirSync(one.at("order"));
  one.run();
  expect([one.read("asked"), one.read("installed")]).toEqual(["", "1.0.0"]);
});

test("what is installed already is told at once", () => {
  const one = host({ installed: "2.0.0", offered: [] });
  one.order("7-go 2.0.0\n");
  expect([one.outcome(), one.read("asked")]).toEqual(["7-go 2.0.0 done", ""]);
});
