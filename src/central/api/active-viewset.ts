// `/active-viewset/{domain}/…`: the versions of a domain, and making one the active one.

import { gives, lists } from "../../wire/customer/operation.ts";
import {
  fleetDeadline,
  viewsetActivate,
  viewsetVersionShape,
  type ViewsetVersion,
} from "../../wire/customer/viewset.ts";
import { waitMaxS } from "../../wire/customer/proof.ts";
import { activationTriesMax, storeManifest } from "./activation.ts";
import { conflict, invalid, list, notFound, ok, type Answer } from "./http/answer.ts";
import { devloveFault, ownNames, unlessBusy } from "./devlove.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { isNewestFirst, orderParameter } from "./http/list-order.ts";
import { idOf, isProblem, mainDomain, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import { canTell, waitFault, waitMsOf, whileTrue } from "./proof-wait.ts";
import { beginFleetActivation } from "../store/content/fleet-activations.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { DomainRow } from "../store/content/domains.ts";
import { activateVersion, listVersions, readBasis } from "../store/content/viewsets.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/active-viewset/:domain/:viewset_id/";

/** The parameter of an activation, which does not wait without it. */
const activationWait = {
  schema: { type: "number", minimum: 0, maximum: waitMaxS, default: 0 },
  description:
    "How many seconds to wait until the deployments that have a connected host have proved the activation; with `require: all`, until it is decided or given up as well. Another host of such a deployment is waited for, too, if it was seen in the last 3 minutes.",
};

async function findVersion(
  work: Work,
  domain: DomainRow,
  text: string,
): Promise<ViewsetVersion | undefined> {
  const id = idOf(text);
  const [found] = await listVersions(work, domain.id, { after: id - 1, limit: 1 });
  return found?.id === id ? found : undefined;
}

async function version(work: Work, domain: DomainRow, text: string): Promise<Answer> {
  const found = await findVersion(work, domain, text);
  return found === undefined ? notFound(`viewset ${shownId(text)} of ${domain.name}`) : ok(found);
}

export function activeViewsetEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/active-viewset/:domain/",
      id: "listViewsets",
      needs: { role: "read", scope: "domain" },
      summary: "List the viewset versions of a domain",
      gives: lists(viewsetVersionShape),
      refuses: [404],
      query: { order: orderParameter },
      handle: async ({ actor, param, query, read }) => {
        const newest = isNewestFirst(query);
        if (typeof newest !== "boolean") return newest;
        const domain = await read(async (work) => mainDomain(work, actor, param("domain")));
        if (isProblem(domain)) return domain;
        return list(async (range) =>
          read(async (work) => listVersions(work, domain.id, { ...range, isNewestFirst: newest })),
        );
      },
    }),
    forUsers({
      method: "GET",
      path,
      id: "getViewset",
      needs: { role: "read", scope: "domain" },
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
      needs: { role: "write", scope: "domain" },
      summary: "Make a viewset version the active one",
      gives: gives(viewsetVersionShape),
      refuses: [404, 409, 503],
      query: { wait: activationWait },
      body: viewsetActivate,
      identity: { field: "id", param: "viewset_id" },
      handle: async (call) => waitFault(call.query) ?? unlessBusy(async () => activate(call, deps)),
      finish: async (call, answer) => settled(call, answer, deps),
    }),
  ];
}

type Asked = { readonly require?: "each" | "all"; readonly deadline_s?: number };

async function activate(call: EndpointCall<Asked, Actor>, deps: ResourceDeps): Promise<Answer> {
  const { actor, body, param, read, change } = call;
  const { require = "each", deadline_s: deadlineS } = body;
  if (require === "each" && deadlineS !== undefined)
    return invalid([{ path: "/deadline_s", message: "needs `require: all`" }]);
  const deadlineMs = (deadlineS ?? fleetDeadline.defaultS) * 1_000;
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
      isOvertaken = false;
      const domain = await mainDomain(work, actor, param("domain"));
      if (isProblem(domain)) return domain;
      const { live } = deps.ports;
      const outcome =
        require === "each"
          ? await activateVersion(work, domain.id, basis, manifest)
          : await beginFleetActivation(
              work,
              { domainId: domain.id, basis, manifest, deadlineMs },
              {
                // One between two channels votes when it is back.
                isLive: (id, instance) =>
                  live.isInTouch(id, instance) || live.isExpected(id, instance),
                sinceMs: live.sinceMs,
              },
            );
      if (outcome === "nobody") return nobodyConnected(domain.name);
      isOvertaken = outcome === "changed";
      return isOvertaken ? overtaken : version(work, domain, param("viewset_id"));
    });
    if (!isOvertaken) return answer;
  }
  return overtaken;
}

function nobodyConnected(domain: string): Answer {
  return conflict(
    `no agent of a deployment of ${domain} is connected, so none can prepare the version; connect one, or activate it with require: each`,
  );
}

/** Waits until the version is decided on, or proved by the connected agents, or the time is up. */
async function settled(
  { actor, param, query, read, gone }: EndpointCall<unknown, Actor>,
  answer: Answer,
  { ports }: ResourceDeps,
): Promise<Answer> {
  const waitMs = query.has("wait") ? (waitMsOf(query) ?? 0) : 0;
  if (answer.kind !== "json" || answer.status !== 200 || waitMs === 0) return answer;
  const current = async (): Promise<ViewsetVersion | undefined> =>
    read(async (work) => {
      const domain = await mainDomain(work, actor, param("domain"));
      return isProblem(domain) ? undefined : findVersion(work, domain, param("viewset_id"));
    });
  const isOpen = ({ is_active, fleet, deployments }: ViewsetVersion): boolean =>
    fleet?.state === "preparing" ||
    (is_active &&
      deployments.some(
        ({ state, deployment_site_id: id }) => state === "pending" && canTell(ports.live, id),
      ));
  const signal = AbortSignal.any([gone, AbortSignal.timeout(waitMs)]);
  const found = await whileTrue(isOpen, current, ports.receipts, signal);
  return found === undefined ? notFound(`viewset ${shownId(param("viewset_id"))}`) : ok(found);
}

const overtaken = conflict("the version changed meanwhile: try again");
