// `/deployment-site/`: where agents run. Domains are linked by their tags.

import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import { mayAct } from "../../core/roles.ts";
import {
  type DeploymentSite,
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
import type { Actor } from "../store/people/tokens.ts";
import {
  createSite,
  findSite,
  listSites,
  removeSite,
  rotateSecret,
  setTags,
  siteRecord,
} from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/deployment-site/:deployment_site_id/";
const idParam = "deployment_site_id";

async function record(work: Work, actor: Actor, id: string): Promise<Answer> {
  const site = await siteRecord(work, actor.customerId, idOf(id));
  return site === undefined ? notFound(`deployment site ${shownId(id)}`) : ok(shownTo(actor, site));
}

/** Secrets are for owners. */
function shownTo({ role }: Actor, site: DeploymentSite): DeploymentSite {
  return mayAct(role, "owner") ? site : { ...site, secret16: null };
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
      needs: { role: "read", scope: "customer" },
      summary: "List deployment sites",
      gives: lists(deploymentSiteShape),
      handle: async ({ actor, read }) =>
        list(async (range) => {
          const sites = await read(async (work) => listSites(work, actor.customerId, range));
          return sites.map((site) => shownTo(actor, site));
        }),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getDeploymentSite",
      needs: { role: "read", scope: "customer" },
      summary: "Read a deployment site",
      gives: gives(deploymentSiteShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (work) => record(work, actor, param(idParam))),
    }),
  ];
}

function writeEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/deployment-site/",
      id: "createDeploymentSite",
      needs: { role: "owner", scope: "customer" },
      summary: "Create a deployment site",
      gives: makes(deploymentSiteShape),
      body: deploymentSiteCreate,
      handle: async ({ actor, body, change }) => {
        const tags = parseTags(body.tags ?? "");
        if (tags === undefined) return tagsProblem("/tags");
        return change(async (work) => {
          const id = await createSite(work, actor, tags);
          return created(await siteRecord(work, actor.customerId, id));
        });
      },
    }),
    forUsers({
      method: "PUT",
      path,
      id: "updateDeploymentSite",
      needs: { role: "write", scope: "customer" },
      summary: "Replace the tags of a deployment site; domains linked by tags follow",
      gives: gives(deploymentSiteShape),
      refuses: [404],
      body: deploymentSiteUpdate,
      identity: { field: "id", param: idParam },
      handle: async ({ actor, body, param, change }) => {
        const tags = parseTags(body.tags);
        if (tags === undefined) return tagsProblem("/tags");
        return change(async (work) => {
          const site = await findSite(work, actor.customerId, idOf(param(idParam)));
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          await setTags(work, actor.customerId, site.id, tags);
          return record(work, actor, param(idParam));
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
      needs: { role: "owner", scope: "customer" },
      summary: "Delete a deployment site; for the user who created it",
      gives: givesNothing,
      refuses: [403, 404],
      handle: async ({ actor, param, change }) => {
        const id = idOf(param(idParam));
        const answer = await change(async (work) => {
          const site = await findSite(work, actor.customerId, id);
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          if (site.createdByUserId !== actor.userId)
            return forbidden("a deployment site is deleted by the user who created it");
          await removeSite(work, id);
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
      needs: { role: "owner", scope: "customer" },
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
        const answer = await change(async (work) => {
          const site = await findSite(work, actor.customerId, id);
          if (site === undefined) return notFound(`deployment site ${shownId(param(idParam))}`);
          await rotateSecret(work, id, oldUntil);
          return record(work, actor, param(idParam));
        });
        if (isGood(answer) && graceS === 0) ports.live.closeSite(id);
        return answer;
      },
    }),
  ];
}
