// What the demo asks of central, through the customer API like any customer: an account, a deployment site, a
// domain with a policy, and the site's folder imported through the agent and activated. Every step may be
// repeated.

import { AccelError, codeOf } from "../core/faults.ts";
import { sleep } from "../base/wait.ts";
import { createCustomerClient, type CustomerClient } from "../client/customer-client.ts";
import type { AccountFile } from "./account.ts";
import { demoDomain } from "./settings.ts";

export type NewSite = { readonly id: number; readonly name16: string; readonly secret16: string };

const askEveryMs = 250;
const activationWaitMs = 120_000;

/** Makes customer and deployment site. They are asked for once, under keys that were written down before. */
export async function enrol(baseUrl: string, account: AccountFile): Promise<NewSite> {
  const { run } = account.current;
  await account.save();
  if (account.current.token === null) {
    await using anyone = createCustomerClient({ baseUrl });
    const { token } = await anyone.trial(
      { username: `demo-${run}` },
      { idempotencyKey: `accel-demo-${run}-trial` },
    );
    await account.save({ token });
  }
  await using client = customer(baseUrl, account);
  if (account.current.site === null) {
    const { id, name16 } = await client.createSite("demo", { idempotencyKey: `${run}-site` });
    await account.save({ site: { id, name16 } });
  }
  const site = account.current.site;
  if (site === null) throw new AccelError("INTERNAL", "no deployment site");
  const { id, name16, secret16 } = await client.site(site.id);
  if (secret16 === null) throw new AccelError("INTERNAL", "the demo's token shows no secret");
  return { id, name16, secret16 };
}

export function customer(baseUrl: string, { current: { token } }: AccountFile): CustomerClient {
  return createCustomerClient({ baseUrl, ...(token === null ? {} : { token }) });
}

/**
 * Makes the domain, linked to the site and open to unreviewed bots; otherwise the first `curl` of whoever
 * tries this would be blocked.
 */
export async function ensureDomain(
  client: CustomerClient,
  account: AccountFile,
  siteId: number,
): Promise<void> {
  const { run } = account.current;
  const known = await client.domains();
  if (known.some(({ name }) => name === demoDomain)) return;
  await client.createDomain(
    demoDomain,
    { deploymentSiteId: siteId },
    { idempotencyKey: `${run}-domain` },
  );
  await client.setPolicy(
    { per_domain_policy: [{ domain: demoDomain, policy: { unknown_bots_can_access: true } }] },
    { idempotencyKey: `${run}-policy` },
  );
}

export type ImportOptions = {
  readonly client: CustomerClient;
  readonly siteId: number;
  /** The name of the new viewset version. An import of that name that already succeeded is not repeated. */
  readonly viewset: string;
  readonly onProgress: (text: string) => void;
  readonly stop: AbortSignal;
};

/**
 * Imports the folder through the agent and activates it. Resolves when the agent has proved that it serves
 * it.
 */
export async function importAndActivate({
  client,
  siteId,
  viewset,
  onProgress,
  stop,
}: ImportOptions): Promise<void> {
  const target = { domain: demoDomain, deploymentSiteId: siteId, viewset };
  const versions = await client.viewsets(demoDomain);
  if (!versions.some(({ name }) => name === viewset)) {
    if (!(await isImporting(client, target))) await client.importViewset(target);
    await imported(client, target, onProgress, stop);
  }
  const made = (await client.viewsets(demoDomain)).find(({ name }) => name === viewset);
  if (made === undefined)
    throw new AccelError("VIEWSET_INVALID", `the import of ${viewset} made no version`);
  await client.activate(demoDomain, made.id);
  onProgress("activating");
  const deadline = performance.now() + activationWaitMs;
  while (performance.now() < deadline) {
    const { activation, deployments } = await client.viewset(demoDomain, made.id);
    if (activation === "applied") return;
    if (activation === "failed")
      throw new AccelError(
        "VIEWSET_INVALID",
        `the agent refused the site: ${deployments.map(({ error }) => error).join("; ")}`,
      );
    if (!(await sleep(askEveryMs, stop))) return;
  }
  throw new AccelError(
    "DEMO_NOT_READY",
    `the agent did not activate the site within ${activationWaitMs / 1_000} s; see agent.log`,
  );
}

type Target = {
  readonly domain: string;
  readonly deploymentSiteId: number;
  readonly viewset: string;
};

/** Returns whether an earlier start's import still runs. One that failed is begun again. */
async function isImporting(client: CustomerClient, target: Target): Promise<boolean> {
  try {
    return (await client.importProgress(target)).status === "started";
  } catch (error) {
    if (codeOf(error) === "NOT_FOUND") return false;
    throw error;
  }
}

async function imported(
  client: CustomerClient,
  target: Target,
  onProgress: ImportOptions["onProgress"],
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const { status, progress, error, files, bytes } = await client.importProgress(target);
    if (status === "failed")
      throw new AccelError(
        "IMPORT_IMPOSSIBLE",
        `the site could not be imported: ${error ?? "no reason was told"}`,
      );
    if (status === "done")
      return onProgress(`imported ${count(files ?? 0)} files, ${megabytes(bytes ?? 0)}`);
    if (progress === undefined) onProgress("importing");
    else
      onProgress(
        `${progress.phase} ${count(progress.files_done)} of ${count(progress.files_total)} files, ${megabytes(progress.bytes_done)} of ${megabytes(progress.bytes_total)}`,
      );
    await sleep(askEveryMs, stop);
  }
}

function count(n: number): string {
  return n.toLocaleString("en-US");
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
