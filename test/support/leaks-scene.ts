// The leak hunt's programs: a real central and a real agent of two workers, four sites, each with rules of its own that are exchanged now and then.

import { Chance } from "./leaks-random.ts";
import { domainOf } from "./leaks-applications.ts";
import type { LeakOrigin } from "./leaks-origin.ts";
import { kinds, randomEdition, type Edition, type Kind } from "./leaks-rules.ts";
import type { Cleared } from "./leaks-judge.ts";
import { Edge, type ApiAnswer } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import { until } from "./until.ts";
import { makeAuthority } from "./x509.ts";

const appliedWithinMs = 120_000;
const editionField = "X-Edition";

/** Throws with what central said, where it refused. */
function must({ status, body }: ApiAnswer, what: string): unknown {
  if (status !== 200 && status !== 201)
    throw new Error(`${what}: ${status} ${JSON.stringify(body)}`);
  return body;
}

export class LeakScene implements AsyncDisposable {
  readonly edge: Edge;
  readonly tlsPort: number;
  readonly ca: string;
  readonly clears: Cleared[] = [];
  readonly #origin: LeakOrigin;
  readonly #seed: number;
  readonly #editions = new Map<string, Edition[]>();

  private constructor(
    edge: Edge,
    origin: LeakOrigin,
    seed: number,
    tls: { readonly port: number; readonly ca: string },
  ) {
    this.edge = edge;
    this.#origin = origin;
    this.#seed = seed;
    this.tlsPort = tls.port;
    this.ca = tls.ca;
  }

  /** `agentMain`: another agent than the sources, as a build with a fault planted. */
  static async start(origin: LeakOrigin, seed: number, agentMain?: string): Promise<LeakScene> {
    await using stack = new AsyncDisposableStack();
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral(agentMain);
    const { api, ports } = edge;
    const trial = must(
      await api.post("/trial/", { username: "leaks", email: "leaks@example.com" }),
      "trial",
    );
    api.token = (trial as { readonly token: string }).token;
    const site = must(await api.post("/deployment-site/", { tags: "leaks" }), "site") as {
      readonly id: number;
      readonly name16: string;
      readonly secret16: string;
    };
    const [tlsPort = 0] = await freePorts(1);
    const listeners = {
      listen: `127.0.0.1:${ports.visitors}`,
      tls_listen: `127.0.0.1:${tlsPort}`,
      workers: 2,
    };
    edge.writeAgentSettings(site, { accelerator: listeners });
    await edge.startAgent(agentMain);
    const authority = makeAuthority();
    for (const kind of kinds)
      must(
        await api.post("/domain/", { name: domainOf(kind), deployment_site_id: site.id }),
        "domain",
      );
    const leaf = authority.issue({ names: kinds.map(domainOf) });
    must(
      await api.post(`/upload/certificates/${site.name16}/`, {
        certificate: leaf.chain,
        private_key: leaf.key,
      }),
      "certificate",
    );
    must(
      await api.post("/bot-access-policy/", { general_policy: { unknown_bots_can_access: true } }),
      "policy",
    );
    const scene = new LeakScene(edge, origin, seed, { port: tlsPort, ca: authority.root.pem });
    for (const kind of kinds) await scene.activate(kind);
    await until("the certificate is in force", async () => {
      const rows = (await api.get(`/upload/certificates/${site.name16}/`)).body as readonly {
        readonly state: string;
      }[];
      return rows.every(({ state }) => state === "applied");
    });
    stack.move();
    return scene;
  }

  /** Returns the rules in force, or about to be, by what an answer says of them. */
  edition(domain: string, no?: number): Edition | undefined {
    const all = this.#editions.get(domain) ?? [];
    return no === undefined ? all.at(-1) : all[no];
  }

  /** Gives the site other rules. Resolves when central says that they are applied. */
  async activate(kind: Kind): Promise<void> {
    const { api } = this.edge;
    const domain = domainOf(kind);
    const all = this.#editions.get(domain) ?? [];
    const edition = randomEdition(
      kind,
      all.length,
      Chance.of(this.#seed + kinds.indexOf(kind), 1_000 + all.length),
    );
    const site = {
      backend: { urls: [this.#origin.urlFor(domain, edition)], retries: 0 },
      headers: { set: { [editionField]: String(edition.no) } },
      cache: edition.cache,
    };
    this.#editions.set(domain, [...all, edition]);
    const name = `edition-${edition.no}`;
    const content = JSON.stringify({ domains: { [domain]: site } });
    must(
      await api.post(`/${domain}/devlove/${name}/`, { schema: "devlove/1", content }),
      `devlove ${content}`,
    );
    const versions = (await api.get(`/active-viewset/${domain}/`)).body as readonly {
      readonly id: number;
      readonly name: string;
    }[];
    const at = `/active-viewset/${domain}/${versions.find((one) => one.name === name)?.id}/`;
    must(await api.put(at, {}), "activation");
    await until(
      `${domain} has edition ${edition.no}`,
      async () =>
        (Object((await api.get(at)).body) as { readonly activation?: string }).activation ===
        "applied",
      appliedWithinMs,
    );
  }

  async clear(kind: Kind): Promise<void> {
    const domain = domainOf(kind);
    const sentMs = performance.now();
    const answer = must(
      await this.edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
        url_path_patterns: ["kind:generated"],
      }),
      "clear",
    ) as { readonly deployments: readonly { readonly state: string }[] };
    if (answer.deployments.every(({ state }) => state === "applied"))
      this.clears.push({ domain, sentMs, appliedMs: performance.now() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.edge[Symbol.asyncDispose]();
  }
}
