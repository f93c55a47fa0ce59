// `/active-viewset/{domain}/…`: the versions of a domain, and making one the active one.

import { gives, lists } from "../../wire/customer/operation.ts";
import { viewsetActivate, viewsetVersionShape } from "../../wire/customer/viewset.ts";
import { activationTriesMax, storeManifest } from "./activation.ts";
import { conflict, list, notFound, ok, type Answer } from "./http/answer.ts";
import { devloveFault, ownNames, unlessBusy } from "./devlove.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { idOf, isProblem, mainDomain, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/users.ts";
import type { DomainRow } from "../store/content/domains.ts";
import { activateVersion, listVersions, readBasis } from "../store/content/viewsets.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/active-viewset/:domain/:viewset_id/";

async function version(work: Work, domain: DomainRow, text: string): Promise<Answer> {
  const id = idOf(text);
  const [found] = await listVersions(work, domain.id, { after: id - 1, limit: 1 });
  return found?.id === id ? ok(found) : notFound(`viewset ${shownId(text)} of ${domain.name}`);
}

export function activeViewsetEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/active-viewset/:domain/",
      id: "listViewsets",
      summary: "List the viewset versions of a domain",
      gives: lists(viewsetVersionShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const domain = await read(async (work) => mainDomain(work, actor, param("domain")));
        if (isProblem(domain)) return domain;
        return list(async (range) => read(async (work) => listVersions(work, domain.id, range)));
      },
    }),
    forUsers({
      method: "GET",
      path,
      id: "getViewset",
      summary: "Read a viewset version",
      gives: gives(viewsetVersionShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (work) => {
          const domain = await mainDomain(work, actor, param("domain"));
          return isProblem(domain) ? domain : version(work, domain, param("viewset_id"));
        }),
    }),
    forUsers({
      method: "PUT",
      path,
      id: "activateViewset",
      summary: "Make a viewset version the active one",
      gives: gives(viewsetVersionShape),
      refuses: [404, 409, 503],
      body: viewsetActivate,
      identity: { field: "id", param: "viewset_id" },
      handle: async (call) => unlessBusy(async () => activate(call, deps)),
    }),
  ];
}

async function activate(call: EndpointCall<unknown, Actor>, deps: ResourceDeps): Promise<Answer> {
  const { actor, param, read, change } = call;
  const id = idOf(param("viewset_id"));
  for (let tried = 0; tried < activationTriesMax; tried++) {
    const found = await read(async (work) => {
      const domain = await mainDomain(work, actor, param("domain"));
      if (isProblem(domain)) return domain;
      const stored = await readBasis(work.tx, domain.id, id);
      if (stored === undefined)
        return notFound(`viewset ${shownId(param("viewset_id"))} of ${domain.name}`);
      // Sub-domains may have been added since it was stored; the agent judges the document once more.
      return { names: await ownNames(work, domain), stored };
    });
    if (isProblem(found)) return found;
    const { names, stored: basis } = found;
    const fault = await devloveFault(deps, basis, names);
    if (fault !== undefined) return fault;
    const manifest = await storeManifest(deps.ports.blobs, basis);
    let isOvertaken = false;
    const answer = await change(async (work) => {
      const domain = await mainDomain(work, actor, param("domain"));
      if (isProblem(domain)) return domain;
      isOvertaken = (await activateVersion(work, domain.id, basis, manifest)) === "changed";
      return isOvertaken ? overtaken : version(work, domain, param("viewset_id"));
    });
    if (!isOvertaken) return answer;
  }
  return overtaken;
}

const overtaken = conflict("the version changed meanwhile: try again");
