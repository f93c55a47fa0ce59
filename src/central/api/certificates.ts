// `/upload/certificates/{deployment_name}/`: certificates of a deployment site, named by its name16. Private keys come in and never go out.

import { gives, givesNothing, lists } from "../../wire/customer/operation.ts";
import {
  certificateUpload,
  type CertificateStored,
  certificateShape,
  certificateStoredShape,
} from "../../wire/customer/certificate.ts";
import { certificatesMax } from "../../wire/vault.ts";
import {
  conflict,
  invalid,
  list,
  noContent,
  notFound,
  ok,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { checkCertificate } from "./certificate-check.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { idOf, isProblem, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { SiteRow } from "../store/journal/sites.ts";
import {
  addCertificate,
  listCertificates,
  removeCertificate,
} from "../store/vault/certificates.ts";
import { findSiteByName } from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/upload/certificates/:deployment_name/";
const nameParam = "deployment_name";

/**
 * Room for both texts as JSON, in which a line end takes two characters, and for what a form puts around
 * them.
 */
const bodyBytesMax = 2 ** 18;

async function siteNamed(
  work: Work,
  { actor, param }: Pick<EndpointCall<unknown, Actor>, "actor" | "param">,
): Promise<SiteRow | ProblemAnswer> {
  const name = param(nameParam);
  const site = await findSiteByName(work, actor.customerId, name);
  return site ?? notFound(`deployment ${JSON.stringify(name)}`);
}

export function certificateEndpoints({ now }: Pick<ResourceDeps, "now">): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path,
      id: "uploadCertificate",
      needs: { role: "write", scope: "customer" },
      summary: "Upload a certificate chain with its private key, as JSON or as a form",
      gives: gives(certificateStoredShape),
      refuses: [404],
      body: certificateUpload,
      bodyBytesMax,
      takesForms: true,
      handle: async (call) => upload(call, now),
    }),
    forUsers({
      method: "GET",
      path,
      id: "listCertificates",
      needs: { role: "read", scope: "customer" },
      summary: "List the certificates of a deployment site",
      gives: lists(certificateShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const site = await read(async (work) => siteNamed(work, { actor, param }));
        if (isProblem(site)) return site;
        return list(async (range) => read(async (work) => listCertificates(work, site.id, range)));
      },
    }),
    forUsers({
      method: "DELETE",
      path: `${path}:certificate_id/`,
      id: "deleteCertificate",
      needs: { role: "write", scope: "customer" },
      summary:
        "Remove a certificate from a deployment site; one that a devlove orders (`order_id`) is not removed",
      gives: givesNothing,
      refuses: [404, 409],
      handle: async ({ actor, param, change }) =>
        change(async (work) => {
          const site = await siteNamed(work, { actor, param });
          if (isProblem(site)) return site;
          const id = param("certificate_id");
          const removed = await removeCertificate(work, site.id, idOf(id));
          if (removed.kind === "ordered")
            return conflict(
              `the devlove of ${removed.domain} orders this certificate, which would come back at once: take tls.acme out of it first`,
            );
          return removed.kind === "removed" ? noContent : notFound(`certificate ${shownId(id)}`);
        }),
    }),
  ];
}

type Upload = { readonly certificate: string; readonly private_key: string };

async function upload(call: EndpointCall<Upload, Actor>, now: () => Date): Promise<Answer> {
  const { body, change, read } = call;
  // Asked before the check, because it matters first whose the deployment is.
  const known = await read(async (work) => siteNamed(work, call));
  if (isProblem(known)) return known;
  const checked = checkCertificate(body.certificate, body.private_key, now());
  if (!checked.ok) return invalid([{ path: `/${checked.field}`, message: checked.reason }]);
  const { certificate } = checked;
  return change(async (work) => {
    const site = await siteNamed(work, call);
    if (isProblem(site)) return site;
    const id = await addCertificate(work, site, certificate);
    if (id === "too-many")
      return conflict(
        `the deployment has as many certificates as it can have: at most ${certificatesMax}`,
      );
    return ok({
      id,
      names: [...certificate.names],
      not_after: certificate.notAfter,
      fingerprint: certificate.fingerprint,
    } satisfies CertificateStored);
  });
}
