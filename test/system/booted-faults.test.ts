// Faults of a host, on a Debian 12 that boots: what the units, the sandbox and systemd make of a disk that is full or read-only, of a clock that is wrong, of an origin
// on a port of the agent's own, and of a process that takes too much memory. The agent reaches central through a proxy only; central gets another key.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmodSync, cpSync, globSync, mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCustomerClient, type CustomerClient } from "../../src/client/customer-client.ts";
import { BootedDebian, bootedHint, bootedMissing } from "../support/booted.ts";
import { CentralThroughProxy, centralName } from "../support/central-through-proxy.ts";
import { freePorts } from "../support/free-ports.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { SmallDisk } from "../support/small-disk.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const domain = "www.example.test";
/** Port 80 of an address is the agent's, that of another one somebody else's. */
const net = `127.${randomInt(1, 255)}.${randomInt(256)}`;
const [edgeAddress, otherAddress] = [`${net}.1`, `${net}.2`];

const dir = tempDir();
/** As mkfs.ext4 makes it: a part of it is root's. */
const disk = new SmallDisk("320M", { reserved: 5 });
let debian: BootedDebian;
let client: CustomerClient;
let origin: Origin;
let neighbour: Server;
let way: CentralThroughProxy;
let ports = { central: 0, metrics: 0 };
let devlove: Record<string, unknown> = {};

afterAll(async () => {
  await (debian as BootedDebian | undefined)?.[Symbol.asyncDispose]();
  await (origin as Origin | undefined)?.[Symbol.asyncDispose]();
  (neighbour as Server | undefined)?.close();
  await (way as CentralThroughProxy | undefined)?.[Symbol.asyncDispose]();
  disk[Symbol.dispose]();
  dir[Symbol.dispose]();
});

const base = (): string => `http://127.0.0.1:${ports.central}`;
const served = async (path: string): Promise<string> => {
  const answer = await fetch(`http://${edgeAddress}${path}`, {
    headers: {
      "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    },
    signal: AbortSignal.timeout(10_000),
  });
  return `${answer.status} ${(await answer.text()).trim()}`;
};
const servesAgain = (): Promise<unknown> =>
  until(
    "the page is served",
    async () => (await served("/")) === "200 the site's own page",
    90_000,
  );
const warnings = async (): Promise<readonly string[]> => {
  const { out } = await debian.sh("accel-agent status --json");
  const status = JSON.parse(out) as { warnings: readonly { code: string; text: string }[] };
  return status.warnings.map(({ code, text }) => `${code}: ${text}`);
};
const isWarned = (what: RegExp): Promise<unknown> =>
  until(
    `the warning ${what.source}`,
    async () => (await warnings()).some((warning) => what.test(warning)),
    90_000,
  );
const backendOf = (url: string): object => ({
  views_dir: ".",
  backend: { urls: [url] },
  cache: { default: { ttl_s: 600 } },
});
const useBackend = (url: string): void => {
  devlove = { domains: { [domain]: backendOf(url) } };
  debian.write("/srv/devlove.json", JSON.stringify(devlove));
};

beforeAll(async () => {
  if (bootedMissing) return;
  const [central = 0, metrics = 0] = await freePorts(2);
  ports = { central, metrics };
  origin = await startOrigin();
  way = await CentralThroughProxy.start(central);
  neighbour = createServer((_, response) => response.end("the neighbour on port 80"));
  // Whoever has the port on every address gives it back some time.
  await until(
    "port 80 is free",
    async () => {
      neighbour.listen(80, otherAddress);
      return once(neighbour, "listening").then(
        () => true,
        () => false,
      );
    },
    120_000,
  );
  const options = ["--level", "none", "--version", "1.0.0", "--out", join(dir.path, "packages")];
  execFileSync(process.execPath, ["scripts/package.mjs", ...options], { cwd: root, stdio: "pipe" });
  debian = await BootedDebian.boot(dir.path, (system) => {
    mkdirSync(join(system, "var/lib/private"), { recursive: true });
    chmodSync(join(system, "var/lib/private"), 0o700);
    disk.mount(join(system, "var/lib/private/accel-agent"));
    for (const file of globSync("*.deb", { cwd: join(dir.path, "packages") }))
      cpSync(join(dir.path, "packages", file), join(system, "root", file));
  });
  await debian.must("apt-get update 2>&1");
  await debian.must("apt-get install -y --no-install-recommends /root/*.deb libfaketime 2>&1");
}, 300_000);

const step = test.skipIf(bootedMissing);

step(
  `central, and an agent on port 80 with a small disk (${bootedHint})`,
  async () => {
    debian.write(
      "/etc/accel-central/central.yaml",
      `listen: 127.0.0.1:${ports.central}\nbase_url: ${base()}\n`,
    );
    await debian.must("systemctl enable --now accel-central");
    await debian.must("accel-central customer add Example");
    const added = await debian.must("accel-central user add anna --customer 1 --token");
    client = createCustomerClient({
      baseUrl: base(),
      token: /^token +(\S+)$/m.exec(added)?.[1] ?? "",
    });
    await debian.must("accel-central site add --user anna");
    const [code = ""] = (await debian.must("accel-central site enrol 1")).split("\n");
    debian.write("/srv/www/index.html", "the site's own page\n");
    useBackend(origin.url);
    debian.write(
      "/etc/accel-agent/agent.yaml",
      `
accelerator: { listen: ${edgeAddress}:80, workers: 1, default_domain: ${domain} }
metrics: { listen: 127.0.0.1:${ports.metrics} }
cache: { disk_max: 64MiB, disk_free_min: 32MiB }
spool: { max: 16MiB }
viewset: { disk_max: 16MiB }
sites: [{ domain: ${domain}, views_dir: /srv/www, devlove_file: /srv/devlove.json }]
`,
    );
    debian.write("/root/ca.pem", way.caPem);
    const proxy = `http://edge:pa%40ss@${way.address}`;
    way.demanded = "edge:pa@ss";
    await debian.must(
      `cat | HTTPS_PROXY=${proxy} accel-agent join --central https://${centralName} --ca-file /root/ca.pem`,
      `${code}\n`,
    );
    expect(await debian.must("stat -c '%a %U' /etc/accel-agent/environment")).toBe("600 root\n");
    // The shell of an operator names no proxy: commands about the unit go the unit's way.
    expect(await debian.must("accel-agent netcheck")).toContain(
      `https://${centralName}/agent-api/v1/ca through http://${way.address}: answers`,
    );
    await client.createDomain(domain, { deploymentSiteId: 1 });
    await servesAgain();
    await until("a page of the origin is cached", async () => {
      const [one, other] = [await served("/page/price"), await served("/page/price")];
      return one.startsWith("200 /page/price answer") && one === other;
    });
    expect(await warnings()).toEqual([]);
    expect(new Set(way.tunnels)).toEqual(new Set([`${centralName}:443`]));
  },
  180_000,
);

/** systemd ends a unit that did not feed its watchdog for a minute. */
const watchdogWithinMs = 150_000;

step(
  `an agent that is killed, and one that hangs, is up again, and tells when that was and what ended it (${bootedHint})`,
  async () => {
    const signal = (name: string): Promise<string> =>
      debian.must(`kill -${name} $(systemctl show -p MainPID --value accel-agent)`);
    await signal("KILL");
    await isWarned(
      /^unclean_end: the agent ended without being told to at \S+Z: it was ended by SIGKILL/,
    );
    await debian.must("systemctl reload accel-agent");
    await signal("STOP");
    // The command asks from within the unit's sandbox. A signal alone would be lost without a word.
    expect((await debian.sh("systemctl reload accel-agent")).code).not.toBe(0);
    expect(await debian.journal("accel-agent")).toContain("it accepts connections on");
    const netcheck = await debian.sh("accel-agent netcheck");
    expect([netcheck.code, netcheck.out]).toEqual([1, expect.stringContaining("the agent hangs")]);
    const hung =
      /^unclean_end: the agent ended without being told to 2 times since \S+Z, .*: systemd's watchdog ended it/;
    await until(
      "the watchdog is told",
      async () => (await warnings().catch(() => [])).some((one) => hung.test(one)),
      watchdogWithinMs,
    );
    await servesAgain();
    const metrics = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text();
    expect(metrics).toContain('accel_agent_unclean_ends_total{cause="signal"} 1\n');
    expect(metrics).toContain('accel_agent_unclean_ends_total{cause="watchdog"} 1\n');
    await debian.must("systemctl restart accel-agent");
    await servesAgain();
    const again = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text();
    expect(again).toContain('accel_agent_unclean_ends_total{cause="unknown"} 0\n');
  },
  300_000,
);

step(
  `a port that another program has fails each start, which is told of and is no crash (${bootedHint})`,
  async () => {
    await debian.must("systemctl stop accel-agent");
    const taker = createServer().listen(ports.metrics, "127.0.0.1");
    await once(taker, "listening");
    await debian.must("systemctl start --no-block accel-agent");
    await until(
      "the start has failed three times",
      async () => Number(await debian.must("systemctl show -p NRestarts --value accel-agent")) >= 3,
      90_000,
    );
    const failing =
      /accel-agent (?:has failed to start|served until \S+ .*, and is not up: systemd has started it again) \d+ times.*: it failed with exit status 1\n/;
    await until("status says so", async () =>
      failing.test((await debian.sh("accel-agent status")).err),
    );
    taker.close();
    await servesAgain();
    await isWarned(
      /^unclean_end: .*, and failed to start (?:at least )?\d+ times .* \(a start failed with exit status 1\)/,
    );
    const { out } = await debian.sh("accel-agent status --json");
    const status = JSON.parse(out) as { warnings: readonly { severity: string; code: string }[] };
    expect(status.warnings.find(({ code }) => code === "unclean_end")?.severity).toBe("warning");
    const metrics = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text();
    expect(metrics).toMatch(/accel_agent_unclean_ends_total\{cause="start"\} [3-9]\d*\n/);
    expect(metrics).toContain('accel_agent_unclean_ends_total{cause="exit"} 0\n');
  },
  180_000,
);

step(
  `settings and secret that are gone are told by the agent while it runs, and by commands to everybody, and come back as these say (${bootedHint})`,
  async () => {
    const [settings, secret] = ["/etc/accel-agent/agent.yaml", "/etc/accel-agent/secret16"];
    const other = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    const told = async (line: string): Promise<string> => {
      const { out, err } = await debian.sh(line);
      return out + err;
    };
    const commands = ["status", "check", "doctor", "netcheck", "logs backlog"].flatMap((command) =>
      ["", `${other} `].map((user) => `${user}accel-agent ${command}`),
    );
    const isTold = async (line: string): Promise<void> => {
      const said = await told(line);
      expect(said, line).toContain(`the settings file ${settings} is gone`);
      expect(said, line).not.toContain("has not joined");
    };
    await debian.must(`mv ${settings} ${secret} /root/`);
    // It sees both from within its sandbox.
    const warned = (await warnings()).filter((one) => one.startsWith("restart_would_fail: "));
    expect(warned.toSorted()).toEqual([
      expect.stringContaining(`${secret} is gone; the agent runs with the copy`),
      expect.stringContaining(`the settings file ${settings} is gone`),
    ]);
    for (const line of commands) await isTold(line);
    expect((await debian.sh("systemctl reload accel-agent")).code).not.toBe(0);
    expect(await debian.journal("accel-agent")).toContain(`the settings file ${settings} is gone`);
    await debian.must("systemctl stop accel-agent");
    for (const line of commands) await isTold(line);
    const [, putBack] = /as root: (install .*); systemctl start accel-agent$/m.exec(
      await told("accel-agent check"),
    ) ?? [undefined, "false"];
    await debian.must(putBack ?? "false");
    expect(await debian.must(`cmp ${settings} /root/agent.yaml; stat -c '%a %U' ${settings}`)).toBe(
      "644 root\n",
    );
    for (const user of ["", `${other} `]) {
      const said = await told(`${user}accel-agent check`);
      expect(said).toContain(`${secret} is not there; the agent cannot start`);
      expect(said).toContain(`As root: install -o root -g root -m 600 /dev/stdin ${secret}`);
      expect(await told(`${user}accel-agent status`)).toContain(
        `${secret} is not there; the agent`,
      );
    }
    await debian.must(
      `cat | install -o root -g root -m 600 /dev/stdin ${secret} && systemctl start accel-agent`,
      await debian.must("cat /root/secret16"),
    );
    await servesAgain();
    expect((await warnings()).filter((one) => one.startsWith("restart_would_fail"))).toEqual([]);
    expect(await debian.must(`stat -c '%a %U' ${secret}`)).toBe("600 root\n");
    // A reload that systemd refuses, or the agent's user would, says why; so does root's check.
    await debian.must(`mv ${secret} /root/`);
    expect((await debian.sh("systemctl reload accel-agent")).code).not.toBe(0);
    expect(await debian.journal("accel-agent")).toContain(`${secret} is gone; the agent runs with`);
    await debian.must(`mv /root/secret16 ${secret} && chmod 600 ${settings}`);
    const closed = `the settings file ${settings} cannot be read by the agent`;
    for (const command of ["check", "doctor"])
      expect(await told(`accel-agent ${command}`)).toContain(closed);
    expect((await debian.sh("systemctl reload accel-agent")).code).not.toBe(0);
    await debian.must(`chmod 644 ${settings} && systemctl reload accel-agent`);
  },
  180_000,
);

step(
  `an origin on port 80 of another address is served; one on a port of the agent's own is refused in words (${bootedHint})`,
  async () => {
    useBackend(`http://${otherAddress}`);
    await until(
      "the neighbour answers",
      async () => (await served("/neighbour")) === "200 the neighbour on port 80",
    );
    useBackend(`http://${edgeAddress}`);
    await isWarned(
      new RegExp(`${edgeAddress}.*(?:own|itself|loop)|(?:own|itself|loop).*${edgeAddress}`, "i"),
    );
    expect(await served("/neighbour")).toBe("200 the neighbour on port 80");
    useBackend(origin.url);
    let asked = 0; // What the neighbour had answered is cached.
    await until("the origin answers again", async () =>
      (await served(`/page/again${++asked}`)).includes(" answer "),
    );
  },
  180_000,
);

/**
 * A clear that finds no room widens, and what was cached goes: an agent that is killed before it had room for a new index
 * says for an hour that the cache began anew.
 */
const saysCacheDropped = (warning: string): boolean => warning.startsWith("cache_dropped");
/** Kills of this file are warned of for an hour. */
const otherThanEnds = async (): Promise<readonly string[]> =>
  (await warnings()).filter((one) => !one.startsWith("unclean_end"));

step(
  `the disk of its state is full to the last byte: clears are in force and receipted, a kill changes nothing (${bootedHint})`,
  async () => {
    const price = await served("/page/price");
    disk.fill(0);
    const clear = await client.clear(domain, ["path:page"], { waitSeconds: 30 });
    expect(clear.deployments).toMatchObject([{ state: "applied" }]);
    const now = await served("/page/price");
    expect(now).not.toBe(price);
    await isWarned(/^disk_low/);
    disk.fill(0);
    await debian.must("kill -KILL $(systemctl show -p MainPID --value accel-agent)");
    await servesAgain();
    expect(await served("/page/price")).not.toBe(price);
    disk.clean();
    await until(
      "nothing is wrong any more but that the cache began anew",
      async () => (await otherThanEnds()).every(saysCacheDropped),
      90_000,
    ).catch(async () => expect(await otherThanEnds()).toEqual([]));
  },
  240_000,
);

step(
  `root fills what the file system keeps for root: clears are receipted all the same, the agent starts, and no record is lost (${bootedHint})`,
  async () => {
    const price = await served("/page/price");
    disk.fill("for nobody");
    for (let round = 0; round < 3; round++) {
      const clear = await client.clear(domain, ["path:page"], { waitSeconds: 30 });
      expect(clear.deployments).toMatchObject([{ state: "applied" }]);
      disk.fill("for nobody");
    }
    const now = await served("/page/price");
    expect(now).not.toBe(price);
    await debian.must("systemctl stop accel-agent");
    disk.fill("for nobody");
    await debian.must("systemctl start accel-agent");
    await servesAgain();
    // Nobody is waited for who is not connected.
    await until("the link is there", async () =>
      (await debian.sh("accel-agent status")).out.includes("connected for"),
    );
    const again = await client.clear(domain, ["path:page"], { waitSeconds: 30 });
    expect(again.deployments).toMatchObject([{ state: "applied" }]);
    expect(await served("/page/price")).not.toBe(now);
    const metrics = await fetch(`http://127.0.0.1:${ports.metrics}/metrics/deployment`);
    expect(await metrics.text()).not.toMatch(/^accel_agent_log_records_dropped_total\{.*\} [1-9]/m);
    disk.clean();
    await until(
      "the disk is right again",
      async () => (await otherThanEnds()).every(saysCacheDropped),
      90_000,
    ).catch(async () => expect(await otherThanEnds()).toEqual([]));
  },
  240_000,
);

step(
  `a backup is proved while central runs; with another key central starts as the unit's user, and the agent is let in (${bootedHint})`,
  async () => {
    await debian.must("accel-central backup /root/backup");
    const drill = await debian.must("accel-central restore /root/backup --drill");
    expect(drill).toContain("1 customer, 1 deployment site, 1 domain");
    expect(drill).toContain("secrets open with the key /var/lib/accel-central/central.key");
    const before = await debian.must("cat /var/lib/private/accel-central/central.key");
    expect((await debian.sh("accel-central rekey")).code).toBe(1); // It runs.
    await debian.must(
      "systemctl stop accel-central && accel-central rekey && systemctl start accel-central",
    );
    const after = await debian.must("cat /var/lib/private/accel-central/central.key");
    expect([after.length, after === before]).toEqual([before.length, false]);
    await until(
      "the agent is let in again",
      async () => /^link +connected/m.test(await debian.must("accel-agent status")),
      120_000,
    );
    const clear = await client.clear(domain, ["path:page"], { waitSeconds: 30 });
    expect(clear.deployments).toMatchObject([{ state: "applied" }]);
    const { code, out } = await debian.sh("accel-central restore /root/backup --drill");
    expect([code, out]).toEqual([3, expect.stringContaining("THE KEY IS ANOTHER")]);
  },
  180_000,
);

step(
  `the clock is ten minutes behind: the site is served, the doctor and the status say so (${bootedHint})`,
  async () => {
    const library = (await debian.must("ls /usr/lib/*/faketime/libfaketime.so.1")).trim();
    debian.write(
      "/etc/systemd/system/accel-agent.service.d/clock.conf",
      `[Service]\nEnvironment=LD_PRELOAD=${library} FAKETIME=-10m FAKETIME_DONT_FAKE_MONOTONIC=1\n`,
    );
    await debian.must("systemctl daemon-reload && systemctl restart accel-agent");
    await servesAgain();
    await isWarned(/clock/i);
    const { out } = await debian.sh(
      `env LD_PRELOAD=${library} FAKETIME=-10m FAKETIME_DONT_FAKE_MONOTONIC=1 accel-agent doctor`,
    );
    expect(out).toMatch(/^FAIL +clock +this host and central differ by (?:59\d|60\d) s/m);
    await debian.must(
      "rm /etc/systemd/system/accel-agent.service.d/clock.conf && systemctl daemon-reload && systemctl restart accel-agent",
    );
    await servesAgain();
    await until(
      "it is in step again",
      async () => !(await warnings()).some((one) => /clock/i.test(one)),
      90_000,
    );
  },
  240_000,
);

step(
  `a memory limit ends the whole agent and it is started again, where control groups can be written (${bootedHint})`,
  async (context) => {
    debian.write(
      "/etc/systemd/system/accel-agent.service.d/memory.conf",
      "[Service]\nMemoryMax=80M\nMemorySwapMax=0\n",
    );
    await debian.must("systemctl daemon-reload && systemctl restart accel-agent || true");
    const { out } = await debian.sh(
      "cat /sys/fs/cgroup/system.slice/accel-agent.service/memory.max /sys/fs/cgroup/memory/system.slice/accel-agent.service/memory.limit_in_bytes 2>/dev/null",
    );
    const isLimited = /^838860\d\d$/m.test(out);
    if (isLimited)
      await until("it was ended for its memory", async () =>
        /oom-kill/.test(await debian.journal("accel-agent")),
      );
    await debian.must(
      "rm /etc/systemd/system/accel-agent.service.d/memory.conf && systemctl daemon-reload && systemctl restart accel-agent",
    );
    await servesAgain();
    if (!isLimited) {
      process.stdout.write(
        "NOT TRIED: control groups cannot be written here, so no memory limit holds\n",
      );
      context.skip("control groups cannot be written here");
    }
  },
  240_000,
);

step(
  `its disk turns read-only: visitors are answered, nothing stale is served, a start says why it fails (${bootedHint})`,
  async () => {
    await served("/page/price");
    const price = await served("/page/price");
    disk.break();
    await servesAgain();
    const { out, err } = await debian.sh(`accel-agent cache clear ${domain} path:page`);
    expect(out + err).toMatch(/agent\.db could not record it/);
    expect(await served("/page/price")).not.toBe(price);
    await debian.must("kill -KILL $(systemctl show -p MainPID --value accel-agent)");
    await until("the journal has the reason", async () =>
      /read-only|EROFS|READONLY|I\/O/i.test(
        await debian.must("journalctl --no-pager -q -u accel-agent -n 20"),
      ),
    );
  },
  240_000,
);
