import { IsEmail, IsNotEmpty, IsString } from 'class-validator';

/** What the mailer needs of an order. One without it can never be mailed, and becomes a dead letter at once. */
export class Order {
  @IsString()
  @IsNotEmpty()
  readonly id!: string;

  @IsString()
  @IsNotEmpty()
  readonly item!: string;

  @IsEmail()
  readonly email!: string;
}
