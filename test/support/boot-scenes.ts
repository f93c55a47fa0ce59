// What a host has been through before it is started where there is no central: activations, documents and files that nobody should serve, certificates.
// After each the same must hold: it serves the version that was in force, whole, over HTTPS with every certificate it was given; and started with central
// again it goes on.

import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bootOffline, type OfflineBoot } from "./boot-offline.ts";
import { inParallel } from "./demo.ts";
import { freePorts } from "./free-ports.ts";
import type { OfflineHost } from "./offline-host.ts";
import { domain, ReleaseRig } from "./release-rig.ts";
import { fingerprintOf } from "./sealed-site.ts";
import { servedFor } from "./served-certificate.ts";
import { until } from "./until.ts";
import { VersionedSite } from "./versioned-site.ts";
import { makeAuthority, type Issued } from "./x509.ts";

export type SceneOptions = {
  readonly files: number;
  readonly certificates: number;
  readonly main?: string;
};
export type SceneBoot = OfflineBoot & { readonly scene: string; readonly expected: number };

const withinMs = 300_000;
/** Its files are not those of any version that is activated. */
const unusedVersion = 99;
const uploadsAtATime = 4;
/** Of the certificates that are there, so many are asked for. */
const handshakesMost = 50;

export async function bootAfterScenes(
  { files, certificates, main }: SceneOptions,
  onBoot: (boot: SceneBoot) => void,
): Promise<void> {
  const [tlsPort = 0] = await freePorts(1);
  await using rig = await ReleaseRig.open({
    importWithinMs: withinMs,
    ...(main === undefined ? {} : { main }),
  });
  const { edge } = rig;
  edge.changeAgentSettings({
    accelerator: {
      listen: `127.0.0.1:${edge.ports.visitors}`,
      tls_listen: `127.0.0.1:${tlsPort}`,
      workers: 2,
    },
  });
  await edge.startAgent(main);
  const scenes = new Scenes(rig, new VersionedSite(files));
  const all = [
    ["two versions", async () => scenes.activate(2)],
    ["devloves that are refused", async () => scenes.refuse()],
    ["a version whose files are damaged at central", async () => scenes.damage()],
    [`${certificates} certificates`, async () => scenes.upload(certificates)],
  ] as const;
  for (const [scene, act] of all) {
    await act();
    const { site, version: expected } = scenes;
    const boot = await bootOffline(rig, site, main, async (host) => scenes.handshakes(host));
    onBoot({ scene, expected, ...boot });
    await edge.startAgent(main);
  }
}

class Scenes {
  readonly site: VersionedSite;
  /** In force. */
  version = 0;
  readonly #rig: ReleaseRig;
  readonly #authority = makeAuthority();
  readonly #leaves = new Map<string, Issued>();

  constructor(rig: ReleaseRig, site: VersionedSite) {
    this.#rig = rig;
    this.site = site;
  }

  async activate(versions: number): Promise<void> {
    for (let no = 0; no < versions; no++) {
      const id = await this.#publish(this.version + 1);
      await this.#rig.activate(id);
      await this.#rig.applied(id, withinMs);
      this.version++;
    }
  }

  async #publish(version: number): Promise<number> {
    return this.#rig.publish(`v${version}`, this.site.change(version));
  }

  /** One that central refuses, and one that only the agent can. */
  async refuse(): Promise<void> {
    const { edge } = this.#rig;
    const paths = Array.from({ length: 100_000 }, (_, no) => [`key${no}`, no]);
    const huge = { domains: { [domain]: Object.fromEntries(paths) } };
    const own = {
      domains: {
        [domain]: { backend: { urls: [`http://127.0.0.1:${edge.ports.metrics}`] } },
      },
    };
    const post = async (name: string, content: unknown): Promise<number> => {
      const body = { schema: "devlove/1", content: JSON.stringify(content) };
      return (await edge.api.post(`/${domain}/devlove/${name}/`, body)).status;
    };
    expectIs("a devlove of 100,000 keys", await post("huge", huge), 400);
    expectIs("a devlove with the agent as backend", await post("own", own), 201);
    const { body } = await edge.api.get(`/active-viewset/${domain}/`);
    const listed = body as readonly Readonly<Record<string, unknown>>[]; // What the specification says of this answer.
    const id = Number(listed.find(({ name }) => name === "own")?.["id"]);
    await this.#rig.activate(id);
    await until(
      "the refusal",
      async () => (await this.#rig.stateOf(id))["state"] === "failed",
      withinMs,
    );
  }

  /** Every file of it has other bytes at central: the host never takes it. */
  async damage(): Promise<void> {
    const { edge } = this.#rig;
    const blobs = join(edge.dir, "central/blobs");
    const before = new Set(filesBelow(blobs));
    const other = [...new VersionedSite(5).change(unusedVersion)];
    const id = await this.#rig.publish("damaged", other);
    const contents = new Set(other.map(([, content]) => content));
    for (const file of filesBelow(blobs)) {
      if (before.has(file) || !contents.has(readFileSync(join(blobs, file), "utf8"))) continue;
      const { size } = statSync(join(blobs, file));
      writeFileSync(join(blobs, file), Buffer.alloc(size, "x"));
    }
    await this.#rig.activate(id);
    await until(
      "what is damaged is noticed",
      () => /BLOB_MISMATCH|VIEWSET_INVALID/.test(edge.agent.said),
      withinMs,
    );
  }

  /** One a host of an example domain each. */
  async upload(certificates: number): Promise<void> {
    const names = Array.from({ length: certificates }, (_, no) => `h${no}.example.net`);
    await inParallel(names, uploadsAtATime, async (name) => {
      const leaf = this.#authority.issue({ names: [name] });
      await this.#rig.upload(leaf);
      this.#leaves.set(name, leaf);
    });
    await this.#rig.installed(withinMs);
  }

  /** What is wrong with those that it was given. */
  async handshakes({ tlsPort }: OfflineHost): Promise<readonly string[]> {
    const wrong: string[] = [];
    const step = Math.ceil(this.#leaves.size / handshakesMost);
    for (const [no, [name, { pem }]] of [...this.#leaves].entries()) {
      if (no % step > 0) continue;
      const served = await servedFor(tlsPort, name, this.#authority.root.pem).catch(String);
      if (served !== fingerprintOf(pem)) wrong.push(`${name}: ${served}`);
    }
    return wrong;
  }
}

function filesBelow(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(dir, path)).isFile(),
  );
}

function expectIs(what: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${what}: ${found}, not ${expected}`);
}
