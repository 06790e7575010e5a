import { createHmac, timingSafeEqual } from 'node:crypto';

/** Bytes that a client sends to show that it knows the token, and those that the server challenges it with. */
export const challengeBytes = 32;

/** HMAC-SHA256 of the server's challenge: the token itself never travels. */
export function answerChallenge(token: string, challenge: Uint8Array): Buffer {
  return createHmac('sha256', token).update(challenge).digest();
}

/** Whether `answer` is the right one, compared in constant time. */
export function isRightAnswer(token: string, challenge: Uint8Array, answer: Uint8Array): boolean {
  const right = answerChallenge(token, challenge);
  return answer.length === right.length && timingSafeEqual(answer, right);
}
