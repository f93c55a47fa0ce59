// Asking a staged state what it would answer, inside the worker that would: what is found and whether its bytes can be read. Nothing is sent,
// counted or recorded.

import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import { messageOf } from "../../../core/faults.ts";
import type { HostTable } from "./host-table.ts";
import { routeStatic, wholeBytesMax, type SiteFile } from "../files/site-files.ts";

/** Never rejects. One after another: visitors go first. */
export async function answerProbes(
  table: HostTable | undefined,
  probes: readonly Probe[],
): Promise<readonly ProbeAnswer[]> {
  const answers: ProbeAnswer[] = [];
  for (const probe of probes)
    answers.push(
      await answerProbe(table, probe).catch((error: unknown): ProbeAnswer =>
        isBadSector(error) ? { kind: "damaged" } : { kind: "failed", reason: messageOf(error) },
      ),
    );
  return answers;
}

function isBadSector(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EIO";
}

async function answerProbe(table: HostTable | undefined, probe: Probe): Promise<ProbeAnswer> {
  const routed = table?.route(probe.host);
  if (routed?.kind !== "served" || routed.host.name !== probe.host)
    return { kind: "failed", reason: "the host is not served" };
  const { compiled } = routed;
  if (compiled === undefined) return { kind: "failed", reason: "no devlove is active" };
  const { site, files, routes } = compiled;
  routes.redirect("/");
  routes.cache("/");
  if (probe.path !== null) return await readable(await files.find(probe.path));
  const route = await routeStatic(files, "/", site.index);
  return await readable(route.kind === "file" ? route.file : undefined);
}

/** Its first bytes, or all of a small one: what is missing, cut short or on a bad sector shows, and other bytes in a small one. */
async function readable(found: SiteFile | undefined): Promise<ProbeAnswer> {
  if (found === undefined) return { kind: "none" };
  await using file = found;
  const { size, digest } = file;
  const body = await file.body({ first: 0, last: Math.min(size, wholeBytesMax) - 1 });
  if (!(body instanceof Uint8Array)) for await (const _ of body) void _;
  else if (size <= wholeBytesMax && file.isIntact?.(body) === false) return { kind: "damaged" };
  return { kind: "file", digest, size };
}
