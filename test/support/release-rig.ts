// Versions of a site, from a maker's directory to the host that is looked at: two real agents of one domain under one central. The maker imports, so that
// the other has to fetch all that it serves.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { parse, stringify } from "yaml";
import { Edge } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";
import { until } from "./until.ts";

export const domain = "www.example.com";

/** Path → content; null: it is deleted. */
export type SiteChange = Iterable<readonly [path: string, content: string | Buffer | null]>;
type Row = Readonly<Record<string, unknown>>;
type Site = { readonly id: number; readonly name16: string; readonly secret16: string };

export type RigOptions = {
  /** Further settings of the host that is looked at. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly importWithinMs?: number;
  /** Another program than the sources, as a build. */
  readonly main?: string;
};

export class ReleaseRig implements AsyncDisposable {
  readonly edge: Edge;
  /** Whose files the next version has. */
  readonly views: string;
  siteId = 0;
  name16 = "";
  #makerId = 0;
  #maker: Program | undefined;
  readonly #options: RigOptions;

  private constructor(edge: Edge, options: RigOptions) {
    this.edge = edge;
    this.views = join(edge.dir, "views");
    this.#options = options;
  }

  /** Central and the maker run, and both deployments are linked; the host that is looked at is not started. */
  static async open(options: RigOptions = {}): Promise<ReleaseRig> {
    await using stack = new AsyncDisposableStack();
    const rig = stack.use(new ReleaseRig(await Edge.prepare(), options));
    await rig.#enrol();
    stack.move();
    return rig;
  }

  async #enrol(): Promise<void> {
    const { edge } = this;
    await edge.startCentral(this.#options.main);
    const trial = await edge.api.post("/trial/", { username: "rig", email: "rig@example.com" });
    edge.api.token = String((trial.body as Row)["token"]);
    const [site, maker] = [await this.#newSite(), await this.#newSite()];
    this.siteId = site.id;
    this.name16 = site.name16;
    this.#makerId = maker.id;
    edge.writeAgentSettings(site, this.#options.settings);
    await this.#writeMakerSettings(maker);
    const named = { name: domain, deployment_site_id: site.id };
    expect((await edge.api.post("/domain/", named)).status).toBe(201);
    const linked = await edge.api.put(`/domain/${domain}/`, { deployment_site_id: maker.id });
    expect(linked.status).toBe(200);
    mkdirSync(this.views);
    writeFileSync(join(edge.dir, "devlove.json"), JSON.stringify({ domains: { [domain]: {} } }));
    await this.startMaker();
  }

  async #newSite(): Promise<Site> {
    const { status, body } = await this.edge.api.post("/deployment-site/", { tags: "" });
    expect(status).toBe(201);
    return body as Site; // What the specification says of this answer.
  }

  #makerPort = 0;

  async #writeMakerSettings({ name16, secret16 }: Site): Promise<void> {
    const { dir } = this.edge;
    const [visitors = 0, metrics = 0] = await freePorts(2);
    this.#makerPort = metrics;
    const settings = parse(readFileSync(join(dir, "agent.yaml"), "utf8")) as Row;
    writeFileSync(join(dir, "maker-secret16"), secret16, { mode: 0o600 });
    mkdirSync(join(dir, "maker"), { mode: 0o700 });
    const own = {
      central_url: settings["central_url"],
      edge: settings["edge"],
      name16,
      secret16_file: join(dir, "maker-secret16"),
      state_dir: join(dir, "maker"),
      accelerator: { listen: `127.0.0.1:${visitors}`, workers: 1 },
      metrics: { listen: `127.0.0.1:${metrics}` },
      sites: [{ domain, views_dir: this.views, devlove_file: join(dir, "devlove.json") }],
    };
    writeFileSync(join(dir, "maker.yaml"), stringify(own));
  }

  async startMaker(): Promise<void> {
    this.#maker = await Program.start(
      ["agent", "run", "--config", join(this.edge.dir, "maker.yaml")],
      () => answers200(`http://127.0.0.1:${this.#makerPort}/readyz`),
      {},
      60_000,
      this.#options.main,
    );
  }

  async endMaker(): Promise<void> {
    await this.#maker?.[Symbol.asyncDispose]();
  }

  /** Changes the maker's directory and makes a version of it; its id. */
  async publish(name: string, change: SiteChange): Promise<number> {
    const made = new Set<string>();
    for (const [path, content] of change) {
      const file = join(this.views, path);
      if (content === null) {
        rmSync(file);
        continue;
      }
      const parent = dirname(file);
      if (!made.has(parent)) mkdirSync(parent, { recursive: true });
      made.add(parent);
      writeFileSync(file, content);
    }
    const { api } = this.edge;
    const path = `/import-viewset/${domain}/${this.#makerId}/${name}/`;
    expect((await api.post(path, {})).status).toBe(200);
    const done = await until(
      `the import of ${name}`,
      async () => {
        const body = (await api.get(path)).body as Row;
        if (body["status"] === "failed") return body;
        return body["status"] === "done" && body;
      },
      this.#options.importWithinMs ?? 120_000,
    );
    expect(done).toMatchObject({ status: "done" });
    return Number(done["viewset_id"]);
  }

  /** What the customer asks for; what comes of it is `stateOf`. */
  async activate(id: number): Promise<void> {
    const { status, body } = await this.edge.api.put(`/active-viewset/${domain}/${id}/`, {});
    expect({ status, body }).toMatchObject({ status: 200 });
  }

  /** What the host that is looked at has proved of a version. */
  async stateOf(id: number): Promise<Row> {
    const { body } = await this.edge.api.get(`/active-viewset/${domain}/${id}/`);
    const { deployments } = body as { readonly deployments: readonly Row[] };
    return deployments.find((one) => one["deployment_site_id"] === this.siteId) ?? {};
  }

  async applied(id: number, withinMs = 120_000): Promise<void> {
    await until(
      `version ${id} is applied`,
      async () => (await this.stateOf(id))["state"] === "applied",
      withinMs,
    );
  }

  /** A certificate with its key, for the host that is looked at. */
  async upload(leaf: { readonly chain: string; readonly key: string }): Promise<void> {
    const body = { certificate: leaf.chain, private_key: leaf.key };
    const { status } = await this.edge.api.post(this.#certificates, body);
    expect(status).toBe(200);
  }

  /** All that were uploaded. */
  async installed(withinMs = 120_000): Promise<void> {
    await until(
      "all certificates are installed",
      async () => {
        const { body } = await this.edge.api.get(this.#certificates);
        return (body as readonly Row[]).every(({ state }) => state === "applied");
      },
      withinMs,
    );
  }

  get #certificates(): string {
    return `/upload/certificates/${this.name16}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endMaker();
    await this.edge[Symbol.asyncDispose]();
  }
}
