// From a bare Debian 12 that boots to a site that is served, by the lines of README.md: seconds, commands, and bytes that come over the network. Central is set up
// first, on the same system, and has its own line. The packages are built as they ship and lie on the host, as after `scp`; what apt fetches for them is counted.
//
// Needs root, debootstrap, systemd-nspawn and binutils, and reaches Debian's mirror.
//
//   npm run bench -- bare-host

import { execFileSync } from "node:child_process";
import { copyFileSync, globSync, statSync } from "node:fs";
import { join } from "node:path";
import { createCustomerClient } from "../src/client/customer-client.ts";
import { BootedDebian, bootedMissing, bootedHint } from "../test/support/booted.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { startOrigin } from "../test/support/origin.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { until } from "../test/support/until.ts";

const domain = "www.example.test";
const mib = 2 ** 20;

/** What was done until a part was ready. */
class Stretch {
  readonly #debian: BootedDebian;
  readonly #beganMs = performance.now();
  #commands = 0;
  #fetched = 0;

  constructor(debian: BootedDebian) {
    this.#debian = debian;
  }

  /** Runs a command of the README. */
  async run(line: string, input = ""): Promise<string> {
    this.#commands++;
    const said = await this.#debian.must(input === "" ? line : `cat | ${line}`, input);
    const [, number = "0", unit = ""] = /^Need to get ([\d.,]+) (k?M?)B/m.exec(said) ?? [];
    const local = [...line.matchAll(/\/root\/\S+\.deb/g)].length > 0 ? this.#localBytes(line) : 0;
    this.#fetched += Number(number.replaceAll(",", "")) * ({ k: 1e3, M: 1e6 }[unit] ?? 1) + local;
    return said;
  }

  #localBytes(line: string): number {
    return [...line.matchAll(/\/root\/(\S+\.deb)/g)]
      .flatMap(([, name = ""]) => globSync(name, { cwd: join(this.#debian.root, "root") }))
      .reduce((sum, name) => sum + statSync(join(this.#debian.root, "root", name)).size, 0);
  }

  said(): string {
    const seconds = (performance.now() - this.#beganMs) / 1_000;
    return `${seconds.toFixed(1)} s, ${this.#commands} commands, ${(this.#fetched / mib).toFixed(1)} MiB with the packages`;
  }
}

export async function run(say: (line: string) => void): Promise<void> {
  if (bootedMissing) throw new Error(bootedHint);
  using dir = tempDir();
  const out = join(dir.path, "packages");
  execFileSync(process.execPath, ["scripts/package.mjs", "--out", out], { stdio: "ignore" });
  await using origin = await startOrigin();
  const [central = 0, edge = 0, metrics = 0] = await freePorts(3);
  const base = `http://127.0.0.1:${central}`;
  await using debian = await BootedDebian.boot(dir.path, (root) => {
    for (const name of globSync("*.deb", { cwd: out }))
      copyFileSync(join(out, name), join(root, "root", name));
  });

  const first = new Stretch(debian);
  await first.run("apt-get update 2>&1");
  await first.run(
    "apt-get install -y --no-install-recommends /root/accel-common_*.deb /root/accel-central_*.deb 2>&1",
  );
  debian.write(
    "/etc/accel-central/central.yaml",
    `listen: 127.0.0.1:${central}\nbase_url: ${base}\n`,
  );
  await first.run("systemctl enable --now accel-central");
  await first.run("accel-central customer add Example");
  const added = await first.run("accel-central user add anna --customer 1 --token");
  await first.run("accel-central site add --user anna");
  say(`central, from nothing to a site: ${first.said()}`);

  const token = /^token +(\S+)$/m.exec(added)?.[1] ?? "";
  const [code = ""] = (await debian.must("accel-central site enrol 1")).split("\n");
  const client = createCustomerClient({ baseUrl: base, token });
  await client.createDomain(domain, { deploymentSiteId: 1 });
  const devlove = { domains: { [domain]: { views_dir: ".", backend: { urls: [origin.url] } } } };
  debian.write("/srv/www/index.html", "the site's own page\n");
  debian.write("/srv/devlove.json", JSON.stringify(devlove));
  debian.write(
    "/etc/accel-agent/agent.yaml",
    `accelerator: { listen: 127.0.0.1:${edge}, default_domain: ${domain} }\nmetrics: { listen: 127.0.0.1:${metrics} }\nsites: [{ domain: ${domain}, views_dir: /srv/www, devlove_file: /srv/devlove.json }]\n`,
  );

  const second = new Stretch(debian);
  await second.run(
    "apt-get install -y --no-install-recommends /root/accel-common_*.deb /root/accel-agent_*.deb 2>&1",
  );
  await second.run(`accel-agent join --central ${base}`, `${code}\n`);
  await until("the page is served", async () => {
    const answer = await fetch(`http://127.0.0.1:${edge}/`, {
      headers: {
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
      },
    });
    return answer.status === 200;
  });
  say(`a host, from nothing but central to a served page: ${second.said()}`);
}
