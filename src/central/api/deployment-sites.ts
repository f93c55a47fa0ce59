// `/deployment-site/`: where agents run. Tags are what domains are linked by.

import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import {
  deploymentSiteCreate,
  deploymentSiteUpdate,
  secretGraceMaxS,
  secretRotate,
  deploymentSiteShape,
} from "../../wire/customer/deployment-site.ts";
import {
  created,
  forbidden,
  isGood,
  list,
  noContent,
  notFound,
  ok,
  type Answer,
} from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { idOf, parseTags, shownId, tagsProblem } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/users.ts";
import type { CustomerUnit } from "../store/people/customer-store.ts";

const path = "/deployment-site/:deployment_site_id/";
const idParam = "deployment_site_id";

async function record(unit: CustomerUnit, actor: Actor, id: string): Promise<Answer> {
  const site = await unit.sites.record(actor.customerId, idOf(id));
  return site === undefined ? notFound(`deployment site ${shownId(id)}`) : ok(site);
}

export function deploymentSiteEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [...readEndpoints(), ...writeEndpoints(), ...revokeEndpoints(deps)];
}

function readEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/deployment-site/",
      id: "listDeploymentSites",
      summary: "List deployment sites",
      gives: lists(deploymentSiteShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (unit) => unit.sites.list(actor.customerId, range))),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getDeploymentSite",
      summary: "Read a deployment site",
      gives: gives(deploymentSiteShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (unit) => record(unit, actor, param(idParam))),
    }),
  ];
}

function writeEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/deployment-site/",
      id: "createDeploymentSite",
      summary: "Create a deployment site",
      gives: makes(deploymentSiteShape),
      body: deploymentSiteCreate,
      handle: async ({ actor, body, change }) => {
        const tags = parseTags(body.tags ?? "");
        if (tags === undefined) return tagsProblem("/tags");
        return change(async (unit) => {
          const id = await unit.sites.create(actor, tags);
          return created(await unit.sites.record(actor.customerId, id));
        });
      },
    }),
    forUsers({
      method: "PUT",
      path,
      id: "updateDeploymentSite",
      summary: "Replace the tags of a deployment site; domains linked by tags follow",
      gives: gives(deploymentSiteShape),
      refuses: [404],
      body: deploymentSiteUpdate,
      identity: { field: "id", param: idParam },
      handle: async ({ actor, body, param, change }) => {
        const tags = parseTags(body.tags);
        if (tags === undefined) return tagsProblem("/tags");
        return change(async (unit) => {
          const site = await unit.sites.find(actor.customerId, idOf(param(idParam)));
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          await unit.sites.setTags(actor.customerId, site.id, tags);
          return record(unit, actor, param(idParam));
        });
      },
    }),
  ];
}

function revokeEndpoints({ ports, now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "DELETE",
      path,
      id: "deleteDeploymentSite",
      summary: "Delete a deployment site; for the user who created it",
      gives: givesNothing,
      refuses: [403, 404],
      handle: async ({ actor, param, change }) => {
        const id = idOf(param(idParam));
        const answer = await change(async (unit) => {
          const site = await unit.sites.find(actor.customerId, id);
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          if (site.createdByUserId !== actor.userId)
            return forbidden("a deployment site is deleted by the user who created it");
          await unit.sites.remove(id);
          return noContent;
        });
        if (isGood(answer)) ports.live.closeSite(id);
        return answer;
      },
    }),
    forUsers({
      method: "POST",
      path: `${path}rotate-secret/`,
      id: "rotateDeploymentSiteSecret",
      summary:
        "Give a deployment site a new secret; the previous one is accepted for the grace period",
      gives: gives(deploymentSiteShape),
      refuses: [404],
      body: secretRotate,
      handle: async ({ actor, body, param, change }) => {
        const id = idOf(param(idParam));
        const graceS = body.grace_seconds ?? secretGraceMaxS;
        const oldUntil =
          graceS === 0 ? undefined : new Date(now().getTime() + graceS * 1_000).toISOString();
        const answer = await change(async (unit) => {
          const site = await unit.sites.find(actor.customerId, id);
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          await unit.sites.rotateSecret(id, oldUntil);
          return record(unit, actor, param(idParam));
        });
        if (isGood(answer) && graceS === 0) ports.live.closeSite(id);
        return answer;
      },
    }),
  ];
}
