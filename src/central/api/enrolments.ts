// `/deployment-site/{id}/enrolment/`: codes with which hosts join, made, listed and revoked.

import {
  enrolmentCreate,
  enrolmentMadeShape,
  enrolmentShape,
} from "../../wire/customer/enrolment.ts";
import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import { writeCode } from "../../wire/enrolment.ts";
import { conflict, created, list, noContent, notFound, ok, type Answer } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { idOf, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import {
  createEnrolment,
  findEnrolment,
  listEnrolments,
  openCodesMax,
  revokeEnrolment,
} from "../store/journal/enrolments.ts";
import { findSite } from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";
import type { Actor } from "../store/people/tokens.ts";

const path = "/deployment-site/:deployment_site_id/enrolment/";
const onePath = `${path}:enrolment_id/`;
const siteParam = "deployment_site_id";
const codeParam = "enrolment_id";

export function enrolmentEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [...changeEndpoints(deps), ...readEndpoints()];
}

function readEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path,
      id: "listEnrolments",
      needs: { role: "owner", scope: "customer" },
      summary: "List the codes of a deployment site; the codes themselves are not shown",
      gives: lists(enrolmentShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const site = await read(async (work) =>
          findSite(work, actor.customerId, idOf(param(siteParam))),
        );
        if (site === undefined) return noSite(param(siteParam));
        return list(async (range) => read(async (work) => listEnrolments(work, site.id, range)));
      },
    }),
    forUsers({
      method: "GET",
      path: onePath,
      id: "getEnrolment",
      needs: { role: "owner", scope: "customer" },
      summary: "Read how much of a code is used",
      gives: gives(enrolmentShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (work) =>
          ofSite(work, actor, param(siteParam), async (siteId) => {
            const one = await findEnrolment(work, siteId, idOf(param(codeParam)));
            return one === undefined ? noCode(param(codeParam)) : ok(one);
          }),
        ),
    }),
  ];
}

function changeEndpoints({ settings }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path,
      id: "createEnrolment",
      needs: { role: "owner", scope: "customer" },
      summary: "Make a code with which hosts join a deployment site (`accel-agent join`)",
      gives: makes(enrolmentMadeShape),
      refuses: [404, 409],
      body: enrolmentCreate,
      handle: async ({ actor, body, param, change }) => {
        const authority = settings.authority();
        return change(async (work) =>
          ofSite(work, actor, param(siteParam), async (siteId) => {
            const made = await createEnrolment(work, siteId, {
              uses: body.uses,
              lifetimeS: body.lifetime_seconds,
              createdBy: actor.username,
            });
            if (made === "too-many") return conflict(tooManyCodes(siteId));
            return created({ ...made.record, code: writeCode(made.code, authority?.digest) });
          }),
        );
      },
    }),
    forUsers({
      method: "DELETE",
      path: onePath,
      id: "deleteEnrolment",
      needs: { role: "owner", scope: "customer" },
      summary: "Revoke a code; hosts that have joined with it are not touched",
      gives: givesNothing,
      refuses: [404],
      handle: async ({ actor, param, change }) =>
        change(async (work) =>
          ofSite(work, actor, param(siteParam), async (siteId) =>
            (await revokeEnrolment(work, siteId, idOf(param(codeParam))))
              ? noContent
              : noCode(param(codeParam)),
          ),
        ),
    }),
  ];
}

/** The words for a site that has too many open codes. */
export function tooManyCodes(siteId: number): string {
  return `deployment site ${siteId} has ${openCodesMax} codes that are open; revoke one of them or wait`;
}

async function ofSite(
  work: Work,
  actor: Actor,
  id: string,
  answer: (siteId: number) => Promise<Answer>,
): Promise<Answer> {
  const site = await findSite(work, actor.customerId, idOf(id));
  return site === undefined ? noSite(id) : answer(site.id);
}

function noSite(id: string): Answer {
  return notFound(`deployment site ${shownId(id)}`);
}

function noCode(id: string): Answer {
  return notFound(`code ${shownId(id)}`);
}
