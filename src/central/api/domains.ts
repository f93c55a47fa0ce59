// `/domain/`: main domains, sub-domains, and links to deployment sites by id or by tags.

import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import { namedDomainFault, parseDomainName } from "../../core/ids.ts";
import { domainCreate, domainUpdate, domainShape } from "../../wire/customer/domain.ts";
import { isTrue } from "../../wire/customer/shape.ts";
import {
  conflict,
  created,
  forbidden,
  invalid,
  list,
  noContent,
  notFound,
  ok,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import {
  idOf,
  isProblem,
  mainDomain,
  parseTags,
  shownId,
  tagsProblem,
} from "./http/path-values.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { DomainRow } from "../store/content/domains.ts";
import {
  addDomain,
  domainRecord,
  listDomains,
  removeDomain,
  writeSubDomain,
} from "../store/content/domains.ts";
import { linkById, unlinkById } from "../store/journal/links.ts";
import { findSite } from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/domain/:name/";

type SiteIds = {
  readonly deployment_site_id?: number | undefined;
  readonly deployment_id?: number | undefined;
};

/** Returns the site's id. Both names of the field are accepted; if both are given, they must agree. */
function siteIdOf(body: SiteIds): number | undefined | ProblemAnswer {
  const { deployment_site_id: id, deployment_id: other } = body;
  return id !== undefined && other !== undefined && id !== other
    ? invalid([{ path: "/deployment_id", message: "differs from deployment_site_id" }])
    : (id ?? other);
}

async function siteMissing(work: Work, actor: Actor, id: number): Promise<Answer | undefined> {
  const site = await findSite(work, actor.customerId, id);
  return site === undefined
    ? notFound(`deployment site ${id}`, [
        { path: "/deployment_site_id", message: "is no deployment site of this customer" },
      ])
    : undefined;
}

function badName(at: string, name: string): ProblemAnswer {
  return invalid([{ path: at, message: namedDomainFault(name) ?? "must be a host name" }]);
}

async function record(work: Work, actor: Actor, id: number): Promise<Answer> {
  const domain = await domainRecord(work, actor.customerId, id);
  return domain === undefined ? notFound(`domain ${id}`) : ok(domain);
}

export function domainEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/domain/",
      id: "createDomain",
      needs: { role: "write", scope: "customer" },
      summary: "Create a domain, linked by tags (a standing rule), by id, or not at all",
      gives: makes(domainShape),
      refuses: [404],
      body: domainCreate,
      handle: createDomain,
    }),
    forUsers({
      method: "GET",
      path: "/domain/",
      id: "listDomains",
      needs: { role: "read", scope: "domain" },
      summary: "List domains",
      gives: lists(domainShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (work) => listDomains(work, actor, range))),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getDomain",
      needs: { role: "read", scope: "domain" },
      summary: "Read a domain",
      gives: gives(domainShape),
      refuses: [404],
      handle: readDomain,
    }),
    forUsers({
      method: "PUT",
      path,
      id: "updateDomain",
      needs: { role: "write", scope: "domain" },
      summary: "Add or change a sub-domain, or link a deployment site by id",
      gives: gives(domainShape),
      refuses: [404, 409],
      body: domainUpdate,
      identity: { field: "name", param: "name" },
      handle: updateDomain,
    }),
    forUsers({
      method: "DELETE",
      path,
      id: "deleteDomain",
      needs: { role: "owner", scope: "customer" },
      summary: "Delete a domain; for the user who created it",
      gives: givesNothing,
      refuses: [403, 404],
      handle: deleteDomain,
    }),
    forUsers({
      method: "DELETE",
      path: `${path}deployment-sites/:deployment_site_id/`,
      id: "unlinkDeploymentSite",
      needs: { role: "write", scope: "customer" },
      summary: "Remove a link by id",
      gives: givesNothing,
      refuses: [404, 409],
      handle: unlink,
    }),
  ];
}

async function readDomain({ actor, param, read }: EndpointCall<unknown, Actor>): Promise<Answer> {
  return read(async (work) => {
    const domain = await mainDomain(work, actor, param("name"));
    return isProblem(domain) ? domain : record(work, actor, domain.id);
  });
}

type Created = EndpointCall<
  { name: string; link_to_deployment_sites_with_tags?: string } & SiteIds,
  Actor
>;

async function createDomain({ actor, body, change }: Created): Promise<Answer> {
  const name = parseDomainName(body.name);
  if (name === undefined) return badName("/name", body.name);
  const tags = parseTags(body.link_to_deployment_sites_with_tags ?? "");
  if (tags === undefined) return tagsProblem("/link_to_deployment_sites_with_tags");
  const deploymentSiteId = siteIdOf(body);
  if (typeof deploymentSiteId === "object") return deploymentSiteId;
  if (tags.length > 0 && deploymentSiteId !== undefined)
    return invalid([
      {
        path: "/link_to_deployment_sites_with_tags",
        message: "excludes a deployment site id: a domain is linked by tags or by id",
      },
    ]);
  return change(async (work) => {
    const missing =
      deploymentSiteId === undefined ? undefined : await siteMissing(work, actor, deploymentSiteId);
    if (missing !== undefined) return missing;
    const id = await addDomain(work, actor, { name, tags, deploymentSiteId });
    if (id === "taken")
      return conflict(`${name} is a domain or sub-domain of this customer already`);
    return created(await domainRecord(work, actor.customerId, id));
  });
}

type SubDomainGiven = {
  readonly name: string;
  readonly share_views_and_views_dir_with_main_domain?: Parameters<typeof isTrue>[0];
};
type Updated = EndpointCall<{ sub_domain?: SubDomainGiven } & SiteIds, Actor>;

async function updateDomain({ actor, body, param, change }: Updated): Promise<Answer> {
  const deploymentSiteId = siteIdOf(body);
  if (typeof deploymentSiteId === "object") return deploymentSiteId;
  if (deploymentSiteId !== undefined && actor.domains !== null)
    return forbidden("a token for some domains links no deployment site");
  return change(async (work) => {
    const domain = await mainDomain(work, actor, param("name"));
    if (isProblem(domain)) return domain;
    const refused =
      body.sub_domain === undefined
        ? undefined
        : await putSubDomain(work, actor, domain, body.sub_domain);
    if (refused !== undefined) return refused;
    if (deploymentSiteId !== undefined) {
      const missing = await siteMissing(work, actor, deploymentSiteId);
      if (missing !== undefined) return missing;
      await linkById(work, { domainId: domain.id, deploymentSiteId });
    }
    return record(work, actor, domain.id);
  });
}

async function putSubDomain(
  work: Work,
  actor: Actor,
  domain: DomainRow,
  given: SubDomainGiven,
): Promise<Answer | undefined> {
  const name = parseDomainName(given.name);
  if (name === undefined) return badName("/sub_domain/name", given.name);
  if (!name.endsWith(`.${domain.name}`))
    return invalid([
      { path: "/sub_domain/name", message: `must be a full host name below ${domain.name}` },
    ]);
  const flag = given.share_views_and_views_dir_with_main_domain;
  const share = flag === undefined ? undefined : isTrue(flag);
  const put = await writeSubDomain(work, actor.customerId, domain, { name, share });
  return put === "taken"
    ? conflict(`${name} is a domain or sub-domain of this customer already`)
    : undefined;
}

async function deleteDomain({
  actor,
  param,
  change,
}: EndpointCall<unknown, Actor>): Promise<Answer> {
  return change(async (work) => {
    const domain = await mainDomain(work, actor, param("name"));
    if (isProblem(domain)) return domain;
    if (domain.createdByUserId !== actor.userId)
      return forbidden("a domain is deleted by the user who created it");
    await removeDomain(work, domain.id);
    return noContent;
  });
}

async function unlink({ actor, param, change }: EndpointCall<unknown, Actor>): Promise<Answer> {
  return change(async (work) => {
    const domain = await mainDomain(work, actor, param("name"));
    if (isProblem(domain)) return domain;
    const id = param("deployment_site_id");
    const outcome = await unlinkById(work, { domainId: domain.id, deploymentSiteId: idOf(id) });
    if (outcome === "not-linked")
      return notFound(`link of ${domain.name} to deployment site ${shownId(id)}`);
    if (outcome === "by-tags")
      return conflict(`${domain.name} is linked to deployment site ${id} by tags: change its tags`);
    return noContent;
  });
}
