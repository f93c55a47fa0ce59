// One site that several real agents serve: a real central, the agents of the site, and an origin whose pages have versions. Whoever is on this machine may purge
// the site at any of them.

import { Edge, visit, type VisitOptions } from "./edge.ts";
import { startFurtherAgent, type FurtherAgent, type Site } from "./further-agent.ts";
import { startPageVersions, type PageVersions } from "./page-versions.ts";
import { until } from "./until.ts";

export const domain = "www.example.com";
/** Much more than a proof takes: machines may be busy with other tests. */
const provedWithinMs = 180_000;

export type ServingAgent = Pick<FurtherAgent, "port" | "metricsPort">;

export class AgentsOfOneSite implements AsyncDisposable {
  readonly edge: Edge;
  readonly origin: PageVersions;
  /** The edge's own agent is the first. */
  readonly agents: readonly ServingAgent[];
  readonly #stack: AsyncDisposableStack;

  private constructor(
    edge: Edge,
    origin: PageVersions,
    agents: readonly ServingAgent[],
    stack: AsyncDisposableStack,
  ) {
    this.edge = edge;
    this.origin = origin;
    this.agents = agents;
    this.#stack = stack;
  }

  /** Resolves when so many agents serve the pages of the origin. `tags`: of each answer. */
  static async start(agents: number, pages: number, tags?: string): Promise<AgentsOfOneSite> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startPageVersions(pages, tags));
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const site = await enrol(edge);
    edge.writeAgentSettings(site);
    await edge.startAgent();
    const all: ServingAgent[] = [{ port: edge.ports.visitors, metricsPort: edge.ports.metrics }];
    for (let no = 1; no < agents; no++)
      all.push(stack.use(await startFurtherAgent(edge, site, `edge-${no}`)));
    await activate(edge, origin.url);
    return new AgentsOfOneSite(edge, origin, all, stack.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Returns the version of the page that an agent serves. */
export async function readPage(
  { port }: ServingAgent,
  no: number,
  options: Pick<VisitOptions, "agent"> = {},
): Promise<number> {
  const { body } = await visit(port, `/page/${no}`, { host: domain, ...options });
  return Number(body.toString());
}

async function enrol({ api }: Edge): Promise<Site> {
  const trial = await api.post("/trial/", { username: "several", email: "several@example.com" });
  api.token = (trial.body as { readonly token: string }).token;
  const site = (await api.post("/deployment-site/", { tags: "eu" })).body as Site; // As the specification says.
  await api.post("/domain/", { name: domain, deployment_site_id: site.id });
  return site;
}

async function activate({ api }: Edge, originUrl: string): Promise<void> {
  const site = { backend: { urls: [originUrl] }, purge: { addresses: ["127.0.0.1"] } };
  const content = JSON.stringify({ domains: { [domain]: site } });
  const made = await api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
  if (made.status !== 201) throw new Error(JSON.stringify(made.body));
  const [version] = (await api.get(`/active-viewset/${domain}/`)).body as readonly { id: number }[];
  const path = `/active-viewset/${domain}/${version?.id}/`;
  await api.put(path, {});
  await until(
    "the activation is proved",
    async () => ((await api.get(path)).body as { activation?: string }).activation === "applied",
    provedWithinMs,
  );
}
