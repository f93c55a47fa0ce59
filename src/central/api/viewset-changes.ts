// `/active-viewset/{domain}/{viewset_id}/changes/`: what activating a version would change, against the active one or
// another: files and devlove.

import { KeyedMutex } from "../../base/mutex.ts";
import { AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { gives } from "../../wire/customer/operation.ts";
import {
  viewsetChangesParameters,
  viewsetChangesShape,
  type ViewsetChanges,
} from "../../wire/customer/viewset-changes.ts";
import { activeVersionId, readContents, type VersionContents } from "../store/content/viewsets.ts";
import type { Actor } from "../store/people/tokens.ts";
import { readManifestBlob } from "./activation.ts";
import type { Ports, ResourceDeps } from "./deps.ts";
import { unlessBusy } from "./devlove.ts";
import { invalid, notFound, ok, type Answer, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { idOf, isProblem, mainDomain, shownId } from "./http/path-values.ts";

export function viewsetChangesEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  // One of a customer at a time: each may hold two manifests of 256 MiB in memory.
  const turns = new KeyedMutex<number>();
  return [
    forUsers({
      method: "GET",
      path: "/active-viewset/:domain/:viewset_id/changes/",
      id: "getViewsetChanges",
      needs: { role: "read", scope: "domain" },
      summary: "Read what activating a viewset version would change",
      gives: gives(viewsetChangesShape),
      refuses: [400, 404, 503],
      query: viewsetChangesParameters,
      handle: async (call) =>
        unlessBusy(async () => turns.run(call.actor.customerId, async () => compare(call, ports))),
    }),
  ];
}

type Pair = { readonly from: VersionContents | undefined; readonly to: VersionContents };

async function compare(call: EndpointCall<unknown, Actor>, ports: Ports): Promise<Answer> {
  const found = await findPair(call);
  if ("kind" in found) return found;
  const { from, to } = found;
  return ok({
    from: from === undefined ? null : { id: from.id, name: from.name },
    to: { id: to.id, name: to.name },
    files: await fileChanges(found, ports),
    devlove: devloveChanges(found),
  } satisfies ViewsetChanges);
}

async function findPair({
  actor,
  param,
  query,
  read,
}: EndpointCall<unknown, Actor>): Promise<Pair | ProblemAnswer> {
  const fromText = query.get("from");
  if (fromText !== null && idOf(fromText) === 0)
    return invalid([{ path: "?from", message: "must be the id of a viewset version" }]);
  return read(async (work) => {
    const domain = await mainDomain(work, actor, param("domain"));
    if (isProblem(domain)) return domain;
    const none = (text: string) => notFound(`viewset ${shownId(text)} of ${domain.name}`);
    const to = await readContents(work, domain.id, idOf(param("viewset_id")));
    if (to === undefined) return none(param("viewset_id"));
    const fromId = fromText === null ? await activeVersionId(work, domain.id) : idOf(fromText);
    const from = fromId === null ? undefined : await readContents(work, domain.id, fromId);
    return from === undefined && fromText !== null ? none(fromText) : { from, to };
  });
}

/** Manifests of a few hundred thousand files are compared in a thread. */
async function fileChanges(
  { from, to }: Pair,
  { blobs, judge }: Pick<Ports, "blobs" | "judge">,
): Promise<ViewsetChanges["files"]> {
  const { filesBlob } = to;
  const before = from?.filesBlob;
  if (filesBlob === null || before === null) return null;
  const bytesOf = async (blob: Sha256) => (await readManifestBlob(blobs, blob)).bytes;
  const compared = await judge.changes(async () => ({
    before: before === undefined ? undefined : await bytesOf(before),
    after: owned(await bytesOf(filesBlob)),
  }));
  if (!compared.ok)
    throw new AccelError("STORE_DAMAGED", `manifests cannot be compared: ${compared.reason}`);
  const { changes } = compared;
  return changes === undefined ? null : { ...changes, samples: [...changes.samples] };
}

/** A buffer that is handed over to a thread must hold nothing else. */
function owned(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

function devloveChanges({ from, to }: Pair): ViewsetChanges["devlove"] {
  const schemas = new Set([...(from?.devlove.keys() ?? []), ...to.devlove.keys()]);
  return [...schemas].toSorted().flatMap((schema) => {
    const before = from?.devlove.get(schema) ?? null;
    const after = to.devlove.get(schema) ?? null;
    return before === after ? [] : [{ schema, before, after }];
  });
}
