// `/symenckeys/`: the symmetric keys of deployment sites, by name. The keys themselves are never shown.

import { gives, lists, makes } from "../../wire/customer/operation.ts";
import { symmetricKeyWrite, symmetricKeyShape } from "../../wire/customer/symmetric-key.ts";
import { symmetricKeysMax } from "../../wire/vault.ts";
import { conflict, created, list, notFound, ok, type Answer } from "./http/answer.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { idOf, shownId } from "./http/path-values.ts";
import type { Actor } from "../store/people/tokens.ts";
import { createKey, findKey, listKeys, moveKey } from "../store/vault/symmetric-keys.ts";
import { findSite } from "../store/journal/sites.ts";
import type { Work } from "../store/engine/work.ts";

const path = "/symenckeys/:symenckey_id/";
const idParam = "symenckey_id";

async function siteMissing(work: Work, actor: Actor, id: number): Promise<Answer | undefined> {
  const site = await findSite(work, actor.customerId, id);
  return site === undefined
    ? notFound(`deployment site ${id}`, [
        { path: "/deployment_site_id", message: "is no deployment site of this customer" },
      ])
    : undefined;
}

async function record(work: Work, actor: Actor, id: string): Promise<Answer> {
  const key = await findKey(work, actor.customerId, idOf(id));
  return key === undefined ? notFound(`symmetric key ${shownId(id)}`) : ok(key);
}

function tooMany(siteId: number): Answer {
  return conflict(
    `deployment site ${siteId} has ${symmetricKeysMax} symmetric keys; more are not possible`,
  );
}

export function symmetricKeyEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "POST",
      path: "/symenckeys/",
      id: "createSymmetricKey",
      needs: { role: "owner", scope: "customer" },
      summary: "Make a symmetric key for a deployment site; its certificates are sealed with it",
      gives: makes(symmetricKeyShape),
      refuses: [404],
      body: symmetricKeyWrite,
      handle: async ({ actor, body, change }) =>
        change(async (work) => {
          const missing = await siteMissing(work, actor, body.deployment_site_id);
          if (missing !== undefined) return missing;
          const id = await createKey(work, body.deployment_site_id);
          return id === "too-many"
            ? tooMany(body.deployment_site_id)
            : created(await findKey(work, actor.customerId, id));
        }),
    }),
    forUsers({
      method: "GET",
      path: "/symenckeys/",
      id: "listSymmetricKeys",
      needs: { role: "read", scope: "customer" },
      summary: "List symmetric keys",
      gives: lists(symmetricKeyShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (work) => listKeys(work, actor.customerId, range))),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getSymmetricKey",
      needs: { role: "read", scope: "customer" },
      summary: "Read which deployment site has a symmetric key",
      gives: gives(symmetricKeyShape),
      refuses: [404],
      handle: async ({ actor, param, read }) =>
        read(async (work) => record(work, actor, param(idParam))),
    }),
    forUsers({
      method: "PUT",
      path,
      id: "updateSymmetricKey",
      needs: { role: "owner", scope: "customer" },
      summary:
        "Bind a symmetric key to another deployment site; what it had sealed is sealed with another key",
      gives: gives(symmetricKeyShape),
      refuses: [404, 409],
      body: symmetricKeyWrite,
      identity: { field: "id", param: idParam },
      handle: bind,
    }),
  ];
}

async function bind({
  actor,
  body,
  param,
  change,
}: EndpointCall<{ readonly deployment_site_id: number }, Actor>): Promise<Answer> {
  const { deployment_site_id: siteId } = body;
  return change(async (work) => {
    const key = await findKey(work, actor.customerId, idOf(param(idParam)));
    if (key === undefined) return notFound(`symmetric key ${shownId(param(idParam))}`);
    const missing = await siteMissing(work, actor, siteId);
    if (missing !== undefined) return missing;
    const outcome = await moveKey(work, key, siteId);
    switch (outcome) {
      case "moved":
        return record(work, actor, param(idParam));
      case "only-key":
        return conflict(
          `${key.name} is the only symmetric key of deployment site ${key.deployment_site_id}: make another one first`,
        );
      case "too-many":
        return tooMany(siteId);
      default:
        return outcome satisfies never;
    }
  });
}
