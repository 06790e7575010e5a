/** Names the descriptor of a process's lifeline to it. */
export const lifelineVariable = 'ROOFLINE_LIFELINE';
