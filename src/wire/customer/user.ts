// `/trial/` and `/user-profile/`: users and their tokens.

import { Type, type Static } from "typebox";
import { mailAddressPattern } from "../../core/outgoing.ts";
import { Timestamp } from "../parts.ts";
import { body, Id, open, shape } from "./shape.ts";

export const Username = Type.String({
  minLength: 1,
  maxLength: 150,
  pattern: "^[A-Za-z0-9_.@+-]+$",
});
/** An address that mail can be sent to; whether mail arrives shows only when it is sent. */
export const Email = Type.String({
  maxLength: 254,
  pattern: `^(?:${mailAddressPattern.slice(1, -1)})?$`,
  description:
    "A mail address in ASCII, with the domain as `xn--…` if it has other letters; or nothing. No mail is sent to other addresses.",
});
export const PersonName = Type.String({ maxLength: 150 });

export const UserPassword = Type.String({ minLength: 8, maxLength: 1_024 });

export const trialStart = body({ username: Username, email: Type.Optional(Email) }, [], {
  examples: [{ username: "ada", email: "ada@example.com" }, { username: "ada" }],
});

export const Trial = open(
  {
    token: Type.String({ minLength: 16 }),
    username: Type.String(),
    user_id: Id,
    customer_id: Id,
  },
  {
    title: "Trial",
    description: "The token is shown only this once.",
    examples: [
      {
        token: "pRzs4mJ1xW0kq7b9vYtE3nLh6cUaD5fGiO2sKxQwZ8",
        username: "ada",
        user_id: 5,
        customer_id: 3,
      },
    ],
  },
);
export type Trial = Static<typeof Trial>;
export const trialShape = shape(Trial);

export const UserProfile = open(
  {
    id: Id,
    username: Type.String(),
    first_name: Type.String(),
    last_name: Type.String(),
    date_joined: Timestamp,
    email: Type.String(),
  },
  {
    title: "UserProfile",
    examples: [
      {
        id: 5,
        username: "ada",
        first_name: "Ada",
        last_name: "Example",
        date_joined: "2026-11-22T12:00:00.000Z",
        email: "ada@example.com",
      },
    ],
  },
);
export type UserProfile = Static<typeof UserProfile>;
export const userProfileShape = shape(UserProfile);

export const userProfileUpdate = body(
  {
    username: Type.Optional(Username),
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
    email: Type.Optional(Email),
    password: Type.Optional(UserPassword),
  },
  ["id", "date_joined"],
  {
    description: "Fields that are left out stay as they are.",
    examples: [{ first_name: "Ada", last_name: "Example", password: "correct horse battery" }],
  },
);
