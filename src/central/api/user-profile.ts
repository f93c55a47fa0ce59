// `/user-profile/{pk}/`: a user reads and edits its own profile.

import { gives } from "../../wire/customer/operation.ts";
import { userProfileUpdate, userProfileShape } from "../../wire/customer/user.ts";
import { conflict, forbidden, notFound, ok, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { hashPassword } from "./password.ts";
import { idOf, shownId } from "./http/path-values.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import { updateUser, userProfile } from "../store/people/users.ts";
import type { Work } from "../store/engine/work.ts";

/**
 * Refuses another user's profile; undefined if it is the caller's own. Users of one customer know of each
 * other.
 */
async function refusal(work: Work, actor: Actor, pk: string): Promise<ProblemAnswer | undefined> {
  const id = idOf(pk);
  if (id === actor.userId) return undefined;
  const other = await userProfile(work, id);
  return other?.customerId === actor.customerId
    ? forbidden("a profile is for its user only")
    : notFound(`user ${shownId(pk)}`);
}

export function userProfileEndpoints({ randomBytes }: ResourceDeps): readonly Endpoint[] {
  const path = "/user-profile/:pk/";
  const answer = async (work: Work, { userId }: Actor) => {
    const found = await userProfile(work, userId);
    return found === undefined ? notFound(`user ${userId}`) : ok(found.profile);
  };
  return [
    forUsers({
      method: "GET",
      path,
      id: "getUserProfile",
      needs: { role: "read", scope: "domain" },
      summary: "Read the user's profile",
      gives: gives(userProfileShape),
      refuses: [403, 404],
      handle: async ({ actor, param, read }) =>
        read(async (work) => (await refusal(work, actor, param("pk"))) ?? answer(work, actor)),
    }),
    forUsers({
      method: "PUT",
      path,
      id: "updateUserProfile",
      needs: { role: "owner", scope: "customer" },
      summary: "Edit the user's profile; a password that is left out stays",
      gives: gives(userProfileShape),
      refuses: [403, 404, 409],
      body: userProfileUpdate,
      identity: { field: "id", param: "pk" },
      handle: async ({ actor, body, param, change }) => {
        const passwordHash =
          body.password === undefined ? undefined : await hashPassword(body.password, randomBytes);
        return change(async (work) => {
          const refused = await refusal(work, actor, param("pk"));
          if (refused !== undefined) return refused;
          const { username, first_name, last_name, email } = body;
          const edited = { username, first_name, last_name, email, passwordHash };
          if ((await updateUser(work, actor.userId, edited)) === "username-taken")
            return conflict(`the username ${username} is in use`);
          return answer(work, actor);
        });
      },
    }),
  ];
}
