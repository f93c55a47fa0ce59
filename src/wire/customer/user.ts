// `/trial/` and `/user-profile/`: users and their tokens.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import { body, Id, open, shape } from "./shape.ts";

const Username = Type.String({ minLength: 1, maxLength: 150, pattern: "^[A-Za-z0-9_.@+-]+$" });
/** Some address with one @; whether mail arrives is seen when it is sent. */
const Email = Type.String({ maxLength: 254, pattern: "^(?:[^\\s@]+@[^\\s@]+)?$" });
const PersonName = Type.String({ maxLength: 150 });

export const trialStart = body({ username: Username, email: Type.Optional(Email) });

export const Trial = open({
  token: Type.String({ minLength: 16 }),
  username: Type.String(),
  user_id: Id,
  customer_id: Id,
});
export type Trial = Static<typeof Trial>;
export const trialShape = shape(Trial);

export const UserProfile = open({
  id: Id,
  username: Type.String(),
  first_name: Type.String(),
  last_name: Type.String(),
  date_joined: Timestamp,
  email: Type.String(),
});
export type UserProfile = Static<typeof UserProfile>;
export const userProfileShape = shape(UserProfile);

export const userProfileUpdate = body(
  {
    username: Type.Optional(Username),
    first_name: Type.Optional(PersonName),
    last_name: Type.Optional(PersonName),
    email: Type.Optional(Email),
    password: Type.Optional(Type.String({ minLength: 8, maxLength: 1_024 })),
  },
  ["id", "date_joined"],
);
