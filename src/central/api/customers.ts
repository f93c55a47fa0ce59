// `/customer/`: a user sees only its own customer.

import { gives, givesNothing, lists } from "../../wire/customer/operation.ts";
import { customerUpdate, type Customer, customerShape } from "../../wire/customer/customer.ts";
import { forbidden, list, noContent, notFound, ok } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { idOf, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import { findCustomer, removeCustomer, renameCustomer } from "../store/people/customers.ts";
import type { Work } from "../store/engine/work.ts";

async function own(work: Work, actor: Actor, id: number) {
  return id === actor.customerId ? findCustomer(work, id) : undefined;
}

function encode({ id, name }: Customer): Customer {
  return { id, name };
}

const path = "/customer/:customer_id/";

export function customerEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [...readEndpoints(), ...changeEndpoints(deps)];
}

function readEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/customer/",
      id: "listCustomers",
      needs: { role: "read", scope: "customer" },
      summary: "List customers",
      gives: lists(customerShape),
      handle: async ({ actor, read }) =>
        list(async ({ after }) => {
          const customer = await read(async (work) => own(work, actor, actor.customerId));
          return customer !== undefined && customer.id > after ? [encode(customer)] : [];
        }),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getCustomer",
      needs: { role: "read", scope: "customer" },
      summary: "Read a customer",
      gives: gives(customerShape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const customer = await read(async (work) => own(work, actor, idOf(param("customer_id"))));
        return customer === undefined
          ? notFound(`customer ${shownId(param("customer_id"))}`)
          : ok(encode(customer));
      },
    }),
  ];
}

function changeEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "PUT",
      path,
      id: "renameCustomer",
      needs: { role: "owner", scope: "customer" },
      summary: "Rename a customer",
      gives: gives(customerShape),
      refuses: [404],
      body: customerUpdate,
      identity: { field: "id", param: "customer_id" },
      handle: async ({ actor, body, param, change }) =>
        change(async (work) => {
          const customer = await own(work, actor, idOf(param("customer_id")));
          if (customer === undefined) return notFound(`customer ${shownId(param("customer_id"))}`);
          await renameCustomer(work, customer.id, body.name);
          return ok(encode({ id: customer.id, name: body.name }));
        }),
    }),
    forUsers({
      method: "DELETE",
      path,
      id: "deleteCustomer",
      needs: { role: "owner", scope: "customer" },
      summary: "Delete a customer and all that it owns; for the user who created it",
      gives: givesNothing,
      refuses: [403, 404],
      handle: async ({ actor, param, change }) => {
        let closed: readonly number[] = [];
        const answer = await change(async (work) => {
          closed = [];
          const customer = await own(work, actor, idOf(param("customer_id")));
          if (customer === undefined) return notFound(`customer ${shownId(param("customer_id"))}`);
          if (customer.created_by_user_id !== actor.userId)
            return forbidden("a customer is deleted by the user who created it");
          closed = await removeCustomer(work, customer.id);
          return noContent;
        });
        for (const id of closed) ports.live.closeSite(id);
        return answer;
      },
    }),
  ];
}
