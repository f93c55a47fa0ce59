// Asking a staged state what it would answer, inside the worker that would: what is found and whether its bytes can be read. Nothing is sent,
// counted or recorded.

import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import { rootRequest } from "../../../core/serving/probe-request.ts";
import { messageOf } from "../../../core/faults.ts";
import type { HostTable } from "./host-table.ts";
import { OtherBytes } from "../files/bodies.ts";
import { wholeBytesMax, type SiteFile } from "../files/site-files.ts";
import { foresee, SiteFacts } from "../site-facts.ts";

/** Answers probes one after another, for visitors go first. Never rejects. */
export async function answerProbes(
  table: HostTable | undefined,
  probes: readonly Probe[],
): Promise<readonly ProbeAnswer[]> {
  const answers: ProbeAnswer[] = [];
  for (const probe of probes)
    answers.push(
      await answerProbe(table, probe).catch((error: unknown): ProbeAnswer =>
        isBadSector(error) || error instanceof OtherBytes
          ? { kind: "damaged" }
          : { kind: "failed", reason: messageOf(error) },
      ),
    );
  return answers;
}

function isBadSector(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EIO";
}

async function answerProbe(
  table: HostTable | undefined,
  { host, path }: Probe,
): Promise<ProbeAnswer> {
  const found = table?.route(host);
  if (table === undefined || found?.kind !== "served" || found.host.name !== host)
    return { kind: "failed", reason: "the host is not served" };
  const { compiled } = found;
  if (compiled === undefined) return { kind: "failed", reason: "no devlove is active" };
  compiled.routes.cache({ rawPath: "/", rawQuery: "" }, { method: "GET", fields: [] }); // A rule that throws shows.
  if (path !== null) {
    await using file = await compiled.files.find(path);
    return await readable(file);
  }
  const { request, target, scheme } = rootRequest(host);
  await using root = new SiteFacts(request, target, scheme, 0);
  const step = await foresee(root, table, host);
  const isFile = step !== "stored" && (step.kind === "file" || step.kind === "single-page");
  return await readable(isFile ? root.foundFile : undefined);
}

/** Reads the first bytes of a file, or all of a small one: what is missing, cut short or on a bad sector shows, and other bytes in a small one. */
async function readable(file: SiteFile | undefined): Promise<ProbeAnswer> {
  if (file === undefined) return { kind: "none" };
  const { size, digest } = file;
  const body = await file.body({ first: 0, last: Math.min(size, wholeBytesMax) - 1 }, "disk");
  if (!(body instanceof Uint8Array)) for await (const _ of body) void _;
  return { kind: "file", digest, size };
}
