// `/import-viewset/{domain}/{deployment_id}/{viewset}/`: starts the task that takes views and devlove from a
// deployment, and tells how it goes.

import { gives } from "../../wire/customer/operation.ts";
import {
  viewsetImport,
  type ImportProgress,
  type ImportStarted,
  importProgressShape,
  importStartedShape,
} from "../../wire/customer/viewset.ts";
import { conflict, notFound, ok, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { idOf, isProblem, mainDomain, shownId, viewsetName } from "./http/path-values.ts";
import type { ImportTarget } from "../store/content/imports.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import { findImport, startImport } from "../store/content/imports.ts";
import { sitesOfDomain } from "../store/journal/links.ts";
import { findSite } from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";

/** Whoever runs central has the reason as a warning, and in the log. */
const objectsAwayText =
  "central's object storage, which does not take files at the moment; the import goes on when it does";

const path = "/import-viewset/:domain/:deployment_id/:viewset/";

async function target(
  work: Work,
  { actor, param }: EndpointCall<unknown, Actor>,
): Promise<ImportTarget | ProblemAnswer> {
  const name = viewsetName(param("viewset"));
  if (typeof name !== "string") return name;
  const domain = await mainDomain(work, actor, param("domain"));
  if (isProblem(domain)) return domain;
  const site = await findSite(work, actor.customerId, idOf(param("deployment_id")));
  // Which other sites the customer has is beyond a token for some domains.
  const isKnown =
    actor.domains === null || (await sitesOfDomain(work, domain.id)).includes(site?.id ?? 0);
  return site === undefined || !isKnown
    ? notFound(`deployment site ${shownId(param("deployment_id"))}`)
    : { domainId: domain.id, domain: domain.name, deploymentSiteId: site.id, viewsetName: name };
}

export function viewsetImportEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path,
      id: "importViewset",
      needs: { role: "write", scope: "domain" },
      summary: "Import views and devlove from a deployment as a new viewset version",
      gives: gives(importStartedShape),
      refuses: [404],
      body: viewsetImport,
      handle: async (call) =>
        call.change(async (work) => {
          const wanted = await target(work, call);
          if (isProblem(wanted)) return wanted;
          const outcome = await startImport(work, wanted);
          if (outcome === "not-linked")
            return conflict(
              `${wanted.domain} is not linked to deployment site ${wanted.deploymentSiteId}: link it first`,
            );
          if (outcome === "name-taken")
            return conflict(`${wanted.domain} has a viewset ${wanted.viewsetName} already`);
          if (outcome === "running")
            return conflict(`an import of ${wanted.viewsetName} is running already`);
          return ok({ status: "ok" } satisfies ImportStarted);
        }),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getViewsetImport",
      needs: { role: "read", scope: "domain" },
      summary: "Read the progress or the end of an import",
      gives: gives(importProgressShape),
      refuses: [400, 404],
      handle: async (call) =>
        call.read(async (work) => {
          const wanted = await target(work, call);
          if (isProblem(wanted)) return wanted;
          const found = await findImport(work, wanted);
          if (found === undefined) return notFound(`import of ${wanted.viewsetName}`);
          const progress =
            found.state === "started" ? ports.live.importProgress(found.id) : undefined;
          // Without a word of the agent it may be.
          const isUploading = found.state === "started" && progress?.phase !== "reading";
          return ok({
            status: found.state,
            import_id: found.id,
            when_started: found.whenStarted,
            when_ended: found.whenEnded,
            ...(progress !== undefined && { progress: { ...progress } }),
            ...(isUploading && ports.objects.takesNothing() && { waits_for: objectsAwayText }),
            ...(found.viewsetId !== null && { viewset_id: found.viewsetId }),
            ...(found.files !== null && { files: found.files }),
            ...(found.bytes !== null && { bytes: found.bytes }),
            ...(found.error !== null && { error: found.error }),
          } satisfies ImportProgress);
        }),
    }),
  ];
}
